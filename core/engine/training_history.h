// The records of a training session: series and events in state.db. A history that can't be opened or
// written never stops the training. The session writes, and whoever is asked by a screen reads, also while
// the session is busy for minutes.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>

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

// Threads: any; each call is short but flush(), which waits for the disk.
class TrainingHistory {
 public:
  // Opens or creates the database at `path`. A damaged one is put aside as "<path>.damaged" and a new one
  // begun; when the disk takes no file at all, history is kept in memory only. Both are events of the new
  // log.
  static Expected<std::unique_ptr<TrainingHistory>> open(storage::FileEnv& files, const std::string& path,
                                                         const Clock& clock);

  // Reading: history/series_store.h and event_log.h say what comes back.
  Expected<std::vector<history::Bucket>> series(std::string_view name, std::int64_t from, std::int64_t to,
                                                std::uint32_t max_buckets);
  Expected<history::EventPage> events_after(std::int64_t cursor, std::uint32_t limit,
                                            LogLevel least = LogLevel::Debug);
  Expected<history::EventPage> newest_events(std::uint32_t limit, LogLevel least = LogLevel::Debug);

  void log(LogLevel level, std::string category, std::string text);
  void add(const StepReport& report);
  void add(std::uint64_t step, const Validation& validation);
  // Before a checkpoint is written, so that a resumed run finds no gap.
  void flush();
  // The model is back at `step`: later values make room. keep: a person went back on purpose, so they stay
  // readable as a branch; after a kill they are only computed again.
  void restored(std::uint64_t step, bool keep);

 private:
  TrainingHistory(storage::Database database, const Clock& clock);

  std::mutex mutex_;
  storage::Database database_;
  const Clock& clock_;
  std::unique_ptr<history::SeriesStore> series_;
  std::unique_ptr<history::EventLog> events_;
};

}  // namespace neuroshard::engine
