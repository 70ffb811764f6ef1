#include "core/checkpoint/save_policy.h"

#include <algorithm>

#include "core/storage/period_count.h"

namespace neuroshard::checkpoint {
namespace {

constexpr std::int64_t day_ms = 24 * 60 * 60 * 1000;

}  // namespace

void SavePolicy::start(std::uint64_t step, MonotonicTime now) {
  last_step_ = step;
  last_time_ = now;
}

DailyWrites SavePolicy::written(WallTime wall) const {
  const std::int64_t today = storage::utc_day(wall);
  // A clock set back a little keeps the count of the later day: the budget is not given twice. A day that is further
  // ahead was a mistake of the clock.
  const std::int64_t ahead = written_.day - today;
  return ahead >= 0 && ahead <= storage::most_periods_ahead ? written_ : DailyWrites{today, 0};
}

void SavePolicy::count(std::uint64_t bytes, WallTime wall) {
  written_ = written(wall);
  written_.bytes += bytes;
}

void SavePolicy::set_written(DailyWrites all, WallTime wall) {
  written_ = written(wall);
  if (all.day == written_.day) written_.bytes = std::max(written_.bytes, all.bytes);
}

bool SavePolicy::due(std::uint64_t step, MonotonicTime now, WallTime wall, std::uint64_t save_bytes) const {
  if (step < last_step_ || step - last_step_ < options_.every_steps) return false;
  return time_and_budget(options_.minimum_interval, now, wall, save_bytes);
}

bool SavePolicy::due_after_sync(std::uint64_t step, MonotonicTime now, WallTime wall,
                                std::uint64_t save_bytes) const {
  return step > last_step_ && time_and_budget(Duration::zero(), now, wall, save_bytes);
}

bool SavePolicy::time_and_budget(Duration minimum_interval, MonotonicTime now, WallTime wall,
                                 std::uint64_t save_bytes) const {
  if (!last_time_) return true;
  double interval = to_seconds(minimum_interval);
  if (options_.daily_write_bytes > 0) {
    const std::uint64_t used = std::min(written(wall).bytes, options_.daily_write_bytes);
    const std::uint64_t left = options_.daily_write_bytes - used;
    if (save_bytes > left) return false;
    if (used > options_.daily_write_bytes / 2) {
      const auto rest_ms = static_cast<double>((std::int64_t{storage::utc_day(wall)} + 1) * day_ms -
                                               wall.time_since_epoch().count());
      interval =
          std::max(interval, rest_ms / 1000.0 * static_cast<double>(save_bytes) / static_cast<double>(left));
    }
  }
  return to_seconds(now - *last_time_) >= interval;
}

DailyWrites SavePolicy::saving(std::uint64_t step, MonotonicTime now, WallTime wall,
                               std::uint64_t save_bytes) {
  start(step, now);
  DailyWrites with_it = written(wall);
  with_it.bytes += save_bytes;
  return with_it;
}

}  // namespace neuroshard::checkpoint
