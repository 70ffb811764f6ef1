// The end of a round, as one voter sees it: a pure function of times and counts (docs/protocol/chain.md). Every
// voter has its own clock; the round ends when more than two thirds of the units have signed a vector.
//
// The round closes when more than two thirds of the units have contributed, or at the deadline: 1.25 times the
// median of the last three rounds that closed by quorum. A voter that was not there takes their durations from
// the times in blocks, and its own ones as soon as it has three: a leader can set a block's time a minute ahead.
// After the close comes a grace for late messages. A
// voter waits longer for payloads that still arrive and for rows that it computes, at most for a deadline.
// Threads: one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>

#include "core/base/clock.h"

namespace neuroshard::rounds {

struct RoundClockRules {
  Duration first_deadline = std::chrono::minutes(30);  // until three rounds closed by quorum
  Duration least_grace = std::chrono::seconds(3), most_grace = std::chrono::seconds(10);
  Duration least_row_patience = std::chrono::seconds(2), most_row_patience = std::chrono::seconds(30);
  Duration most_pause_after_carried = std::chrono::seconds(30);
};

// The voter's state of the round.
struct RoundCounts {
  std::uint64_t contributed_units = 0;  // of active voters
  std::uint64_t active_units = 0;
  std::size_t contributions = 0;  // of anybody
  std::size_t expected = 0;       // members, candidates too, that contributed lately or are new
  std::size_t complete = 0;       // of them: all payloads are here
  bool payloads_move = false;     // pieces arrived lately, or are being checked
};

// A member with fewer than H steps contributes what it has from then on, so that fast members don't wait for slow
// ones. Fewer than half of the units can't make the others do that.
constexpr bool half_contributed(const RoundCounts& counts) {
  return counts.contributed_units > 0 && 2 * counts.contributed_units >= counts.active_units;
}

class RoundClock {
 public:
  explicit RoundClock(RoundClockRules rules) : rules_(rules) {}

  // A round begins. carried_before: all rows of the round before were carried, so their work is contributed
  // again at once; the round stays open for half a deadline, at most for `most_pause_after_carried`.
  // by_blocks: durations of the last rounds that closed by quorum, by the times in blocks; three at most.
  void open(MonotonicTime now, bool carried_before, const std::deque<Duration>& by_blocks);
  // Call when something changed and at every tick.
  void look(MonotonicTime now, const RoundCounts& counts);
  bool is_closing() const { return closing_at_.has_value(); }
  // By the times in blocks this round is about to close, and a member that has made this share of its steps (0 to 1)
  // will not have made all by then. For members outside the committee: they see no contribution before their own.
  bool closes_before_all_steps(MonotonicTime now, double share) const;
  bool wants_vector(MonotonicTime now, const RoundCounts& counts) const;
  // The close block is there.
  void closed(MonotonicTime now);
  // A row that is not ready by now is carried. moves: payloads arrive, or the row is being computed.
  bool row_is_late(MonotonicTime now, bool moves) const;

  Duration deadline() const;
  Duration grace() const;
  Duration row_patience() const;

 private:
  const RoundClockRules rules_;
  MonotonicTime opened_{};
  bool after_carried_ = false;
  std::optional<MonotonicTime> closing_at_, closed_at_;
  bool by_quorum_ = false;
  // Of the last three rounds that closed by quorum: as this voter saw them, and by the times in blocks.
  std::deque<Duration> durations_, by_blocks_;
};

}  // namespace neuroshard::rounds
