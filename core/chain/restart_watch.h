// When a node may sign again after a start. A disk that is older than what the node signed last (a backup, a
// copy, a lost write) does not know its votes and its contribution of the present height and round; a second one
// of either would be equivocation. So a node first asks how far the others are. One that is not behind goes on
// at once, from its record of votes. One that is behind catches up, lets that height go by or `wait` pass before
// it votes, and signs neither a contribution nor a vector of the round that it finds in progress; so that
// nobody waits for those, it is away until that is over. One that nobody answers goes on after `ask_for`.
//
//   Asking   → Settled (enough answer and none is ahead; or nobody answers) | Behind (a block came that others
//              had) | Waiting (this node signed what it does not remember)
//   Behind   → Waiting (nobody is ahead any more; or no block came for `wait`)
//   Waiting  → Settled (the next block, or `wait` is over)
//
// Pure: times in, answers out. Threads: one.
#pragma once

#include <cstdint>

#include "core/base/clock.h"

namespace neuroshard::chain {

class RestartWatch {
 public:
  RestartWatch(Duration ask_for, Duration wait) : ask_for_(ask_for), wait_(wait) {}

  // A start, or a history that others had, with rounds behind it. Before it and without it: settled.
  void begin(MonotonicTime now);
  // A block was appended; round: the newest with a result.
  void on_block(std::uint64_t height, std::uint64_t round, MonotonicTime now);
  // Another node of this history is that far.
  // enough: with this one so many of those that were asked have answered that this node may go on.
  void on_peer(std::uint64_t its_height, std::uint64_t height, std::uint64_t round, bool enough,
               MonotonicTime now);
  // It signed something in this height or round that it does not remember.
  void forgot(std::uint64_t height, std::uint64_t round, MonotonicTime now);
  // Whether may_vote() changed.
  bool tick(std::uint64_t height, std::uint64_t round, MonotonicTime now);
  bool may_vote() const { return state_ == State::Settled; }
  bool may_sign(std::uint64_t round) const {
    return (state_ == State::Settled || state_ == State::Waiting) && round > quiet_round_;
  }
  // The round that it found in progress when it had caught up: the others are better off without its vote.
  bool is_quiet(std::uint64_t round) const { return quiet_round_ != 0 && round <= quiet_round_; }

 private:
  enum class State : std::uint8_t { Settled, Asking, Behind, Waiting };
  void wait(std::uint64_t height, std::uint64_t round, MonotonicTime now);

  const Duration ask_for_, wait_;
  State state_ = State::Settled;
  MonotonicTime since_{};
  std::uint64_t found_height_ = 0, quiet_round_ = 0;
};

}  // namespace neuroshard::chain
