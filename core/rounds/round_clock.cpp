#include "core/rounds/round_clock.h"

#include <algorithm>
#include <vector>

namespace neuroshard::rounds {
namespace {

constexpr std::size_t rounds_measured = 3;

// Of the last rounds; nothing: fewer are known.
std::optional<Duration> usual(const std::deque<Duration>& durations) {
  if (durations.size() < rounds_measured) return std::nullopt;
  std::vector<Duration> sorted(durations.begin(), durations.end());
  std::sort(sorted.begin(), sorted.end());
  return sorted[rounds_measured / 2];
}

}  // namespace

void RoundClock::open(MonotonicTime now, bool carried_before, const std::deque<Duration>& by_blocks) {
  opened_ = now;
  by_blocks_ = by_blocks;
  after_carried_ = carried_before;
  closing_at_.reset();
  closed_at_.reset();
  by_quorum_ = false;
}

void RoundClock::look(MonotonicTime now, const RoundCounts& counts) {
  if (closing_at_ || counts.contributions == 0) return;
  const Duration passed = now - opened_;
  if (after_carried_ && passed < std::min(rules_.most_pause_after_carried, deadline() / 2)) return;
  by_quorum_ = 3 * counts.contributed_units > 2 * counts.active_units;
  if (by_quorum_ || passed >= deadline()) closing_at_ = now;
}

bool RoundClock::wants_vector(MonotonicTime now, const RoundCounts& counts) const {
  if (!closing_at_) return false;
  const bool all_here = counts.contributed_units == counts.active_units &&
                        counts.contributions >= counts.expected && counts.complete == counts.contributions;
  if (all_here) return true;
  const Duration waited = now - *closing_at_;
  if (waited < grace()) return false;
  const bool on_the_way = counts.complete < counts.contributions && counts.payloads_move;
  return !on_the_way || waited >= deadline();
}

void RoundClock::closed(MonotonicTime now) {
  closed_at_ = now;
  if (!by_quorum_) return;
  durations_.push_back(now - opened_);
  if (durations_.size() > rounds_measured) durations_.pop_front();
}

bool RoundClock::row_is_late(MonotonicTime now, bool moves) const {
  if (!closed_at_) return false;
  const Duration waited = now - *closed_at_;
  return waited >= (moves ? std::max(rules_.most_row_patience, deadline()) : row_patience());
}

// A usual round may end with a grace. Another one is for making the contribution and sending it.
bool RoundClock::closes_before_all_steps(MonotonicTime now, double share) const {
  const auto length = usual(by_blocks_);
  if (!length) return false;
  const Duration passed = now - opened_;
  if (passed < std::max(*length / 2, *length - 2 * grace())) return false;
  return share * to_seconds(*length) < to_seconds(passed);
}

Duration RoundClock::deadline() const {
  const auto length = usual(durations_.size() < rounds_measured ? by_blocks_ : durations_);
  return length ? *length * 5 / 4 : rules_.first_deadline;
}

Duration RoundClock::grace() const {
  return std::min(rules_.most_grace, std::max(rules_.least_grace, deadline() / 10));
}

Duration RoundClock::row_patience() const {
  return std::min(rules_.most_row_patience, std::max(rules_.least_row_patience, deadline() / 4));
}

}  // namespace neuroshard::rounds
