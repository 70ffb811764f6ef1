// When to save (docs/protocol/checkpoints.md): every 10 steps, but not sooner than a minimum interval, nor
// beyond the daily write budget.
#pragma once

#include <cstdint>
#include <optional>

#include "core/base/clock.h"
#include "core/checkpoint/manifest.h"

namespace neuroshard::checkpoint {

struct SavePolicyOptions {
  std::uint64_t every_steps = 10;
  Duration minimum_interval = std::chrono::seconds(30);  // setting checkpoint_min_interval
  std::uint64_t daily_write_bytes = 50'000'000'000;      // 0: no budget
};

// Pure: time comes in with each call. The first half of a day's budget is spent at the minimum interval; the
// rest is stretched over what is left of the (UTC) day, so that a run never goes hours without a checkpoint
// because it saved eagerly in the morning. After an outer sync only the budget is asked, and a clean stop is
// not asked for here at all; both are counted.  Threads: one.
class SavePolicy {
 public:
  // written: from the manifest that training continues from.
  explicit SavePolicy(SavePolicyOptions options, DailyWrites written = {})
      : options_(options), written_(written) {}

  // Training starts or continues here: intervals count from now.
  void start(std::uint64_t step, MonotonicTime now);
  // save_bytes: what the next save will write.
  bool due(std::uint64_t step, MonotonicTime now, WallTime wall, std::uint64_t save_bytes) const;
  // With the anchor of a new round in place; never twice for one step.
  bool due_after_sync(std::uint64_t step, MonotonicTime now, WallTime wall, std::uint64_t save_bytes) const;
  // A save started. The writes of the day with this one, for its manifest. count() is called once it has
  // ended, so a full disk does not use up the budget.
  DailyWrites saving(std::uint64_t step, MonotonicTime now, WallTime wall, std::uint64_t save_bytes);
  // So many bytes were written: by a save that succeeded, or by one that failed after it began to write.
  void count(std::uint64_t bytes, WallTime wall);
  // Others write, too: so many bytes in all on this day, if that is more than is known.
  void set_written(DailyWrites all, WallTime wall);
  // Written today, and the budget; for people.
  DailyWrites written(WallTime wall) const;
  const SavePolicyOptions& options() const { return options_; }
  // In force from the next due() on; what was counted stays counted.
  void set_options(const SavePolicyOptions& options) { options_ = options; }

 private:
  bool time_and_budget(Duration minimum_interval, MonotonicTime now, WallTime wall,
                       std::uint64_t save_bytes) const;
  SavePolicyOptions options_;
  DailyWrites written_;
  std::uint64_t last_step_ = 0;
  std::optional<MonotonicTime> last_time_;
};

}  // namespace neuroshard::checkpoint
