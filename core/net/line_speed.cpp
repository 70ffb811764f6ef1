#include "core/net/line_speed.h"

#include <algorithm>

#include "core/base/check.h"

namespace neuroshard::net {
namespace {

std::int64_t hour_of(MonotonicTime at) {
  return std::chrono::duration_cast<std::chrono::hours>(at.time_since_epoch()).count();
}

}  // namespace

LineSpeed::LineSpeed(const Clock& clock, std::uint64_t up_limit, std::uint64_t down_limit) : clock_(clock) {
  set_limits(up_limit, down_limit);
}

void LineSpeed::set_limits(std::uint64_t up, std::uint64_t down) {
  const std::lock_guard lock(mutex_);
  line(LineWay::Up).limit = up;
  line(LineWay::Down).limit = down;
}

void LineSpeed::begin(LineWay way) {
  const std::lock_guard lock(mutex_);
  Line& one = line(way);
  if (one.wanted++ != 0) return;
  const MonotonicTime now = clock_.monotonic_now();
  if (one.since && now - one.paused <= longest_pause) return;
  one.since = now;
  one.counts = false;
  one.bytes = 0;
}

void LineSpeed::end(LineWay way) {
  const std::lock_guard lock(mutex_);
  Line& one = line(way);
  NS_CHECK(one.wanted > 0);
  if (--one.wanted == 0) one.paused = clock_.monotonic_now();
}

void LineSpeed::carried(LineWay way, std::uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  Line& one = line(way);
  if (one.wanted == 0 || !one.since) return;
  one.bytes += bytes;
  const MonotonicTime now = clock_.monotonic_now();
  const Duration took = now - *one.since;
  if (took < (one.counts ? least_time : first_time) || one.bytes < least_bytes) return;
  if (one.counts) keep(one, static_cast<double>(one.bytes) / to_seconds(took), now);
  one.counts = true;
  one.since = now;
  one.bytes = 0;
}

void LineSpeed::keep(Line& line, double rate, MonotonicTime now) {
  const std::int64_t hour = hour_of(now);
  if (line.measured.empty() || line.measured.back().number != hour) {
    line.measured.push_back({hour, 0, 0});
    if (line.measured.size() > hours) line.measured.pop_front();
  }
  Hour& latest = line.measured.back();
  latest.second = std::max(latest.second, std::min(latest.best, rate));
  latest.best = std::max(latest.best, rate);
}

std::uint64_t LineSpeed::speed(LineWay way) const {
  const std::lock_guard lock(mutex_);
  const Line& one = lines_[static_cast<std::size_t>(way)];
  const std::int64_t oldest = hour_of(clock_.monotonic_now() - forgotten);
  double best = 0, second = 0;
  for (const Hour& hour : one.measured) {
    if (hour.number < oldest) continue;
    for (const double rate : {hour.best, hour.second}) {
      second = std::max(second, std::min(best, rate));
      best = std::max(best, rate);
    }
  }
  const auto announced = static_cast<std::uint64_t>(second);
  return one.limit == 0 ? announced : std::min(announced, one.limit);
}

std::uint64_t LineSpeed::at_most(LineWay way) const {
  const std::uint64_t measured = speed(way);
  if (measured > 0) return measured;
  const std::lock_guard lock(mutex_);
  return lines_[static_cast<std::size_t>(way)].limit;
}

}  // namespace neuroshard::net
