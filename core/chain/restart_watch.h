// When a node may sign again after a start. A disk that is older than what the node signed last (a backup, a
// copy, a lost write) does not know its votes and its contribution of the present height and round; a second one
// of either would be equivocation. So a node asks the others what they hold of it before it signs. Once enough of
// them are at its height and hold nothing that it does not remember, it goes on as if it had not stopped. If they
// hold more, or it was behind and too few answer, it lets that height go by or `wait` pass before it votes, and
// signs neither a contribution nor a vector of the round in progress; so that nobody waits for those, it is away
// until that round is over. One that nobody is ahead of goes on after `ask_for`, also where few answer: after a power
// cut all nodes start at once, and none of them would begin.
//
//   Asking    → Settled (enough answer, or `ask_for` is over) | Behind (a block came that others had)
//   Behind    → Settled (enough answer) | Comparing (nobody is ahead any more) | Waiting (no block for `wait`)
//   Comparing → Settled (enough answer) | Waiting (too few do for `ask_for`)
//   Waiting   → Settled (the next block, or `wait` is over)
//
// With an old disk each of the first three ends in Waiting instead of Settled.
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
  void on_block(std::uint64_t height, MonotonicTime now);
  // Another node of this history is not ahead.
  void on_peer(MonotonicTime now);
  // Enough others are at this height and have told what they hold of it.
  void on_answers(std::uint64_t height, std::uint64_t round, MonotonicTime now);
  // It signed something that it does not remember: its disk is old. Whether that is news.
  bool forgot(std::uint64_t height, std::uint64_t round, MonotonicTime now);
  // Whether may_vote() changed.
  bool tick(std::uint64_t height, std::uint64_t round, MonotonicTime now);
  bool may_vote() const { return state_ == State::Settled; }
  bool may_sign(std::uint64_t round) const {
    return (state_ == State::Settled || state_ == State::Waiting) && round > quiet_round_;
  }
  // A round that it signs nothing of: the others are better off without its vote.
  bool is_quiet(std::uint64_t round) const { return quiet_round_ != 0 && round <= quiet_round_; }

 private:
  enum class State : std::uint8_t { Settled, Asking, Behind, Comparing, Waiting };
  void wait(std::uint64_t height, std::uint64_t round, MonotonicTime now);

  const Duration ask_for_, wait_;
  State state_ = State::Settled;
  bool is_old_ = false;
  MonotonicTime since_{};
  std::uint64_t found_height_ = 0, quiet_round_ = 0;
};

}  // namespace neuroshard::chain
