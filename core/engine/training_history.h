// The records of a training session: series and events in state.db. A history that can't be opened or
// written never stops the training. The session writes; queries read, also while the session is busy for
// minutes.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string_view>

#include "core/base/clock.h"
#include "core/base/expected.h"
#include "core/history/event_log.h"
#include "core/history/series_store.h"
#include "core/storage/database.h"
#include "core/storage/file_env.h"

namespace neuroshard::engine {

// Steps between two writes to the disk when no checkpoint comes first.
inline constexpr std::uint64_t history_flush_steps = 50;

struct StepReport;
struct Validation;

// Threads: any; each call is short except flush(), which waits for the disk.
class TrainingHistory {
 public:
  // Opens or creates the database at `path`. Renames a damaged one to "<path>.damaged" and starts a new one;
  // if the disk accepts no file, the history is in memory only. Both cases are recorded as events in the new
  // log.
  static Expected<std::unique_ptr<TrainingHistory>> open(storage::FileEnv& files, const std::string& path,
                                                         const Clock& clock);

  // Reading: for the results, see history/series_store.h and event_log.h.
  Expected<std::vector<history::Bucket>> series(std::string_view name, std::int64_t from, std::int64_t to,
                                                std::uint32_t max_buckets);
  std::vector<std::string> series_names();
  // The newest step, at most `step`, that has this value. Nothing: the last few thousand steps before it have none, or no single steps
  // are kept there any more.
  std::optional<std::uint64_t> step_of(std::string_view name, double value, std::uint64_t step);
  Expected<history::EventPage> events_after(std::int64_t cursor, std::uint32_t limit,
                                            LogLevel least = LogLevel::Debug);

  void log(LogLevel level, std::string category, std::string text);
  void add(const StepReport& report);
  void add(std::uint64_t step, const Validation& validation);
  // Call before a checkpoint is written, so that a resumed run has no gap.
  void flush();
  // The model has returned to `step`: removes later values. keep: they stay readable as a branch, because a
  // person has restored the step; after a kill they are only computed again.
  void restored(std::uint64_t step, bool keep);

 private:
  TrainingHistory(storage::Database database, const Clock& clock);
  static Expected<std::unique_ptr<TrainingHistory>> open_at(const std::string& path, const Clock& clock);

  std::mutex mutex_;
  storage::Database database_;
  const Clock& clock_;
  std::unique_ptr<history::SeriesStore> series_;
  std::unique_ptr<history::EventLog> events_;
};

}  // namespace neuroshard::engine
