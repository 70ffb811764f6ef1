#include "core/engine/training_history.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/engine/training_session.h"
#include "core/history/schema.h"

namespace neuroshard::engine {
namespace {

// A log that stays behind would be applied to the new database, and one of an earlier damaged file to this
// one.
bool move_aside(storage::FileEnv& files, const std::string& path) {
  const std::string damaged = path + ".damaged";
  if (!files.rename(path, damaged).ok()) return false;
  for (const char* suffix : {"-wal", "-shm"}) {
    static_cast<void>(files.remove_file(damaged + suffix).ok());  // mostly missing, as the next one is
    static_cast<void>(files.rename(path + suffix, damaged + suffix).ok());
  }
  return true;
}

}  // namespace

// Reads what the series continue from, so that damage behind the first page is found here.
Expected<std::unique_ptr<TrainingHistory>> TrainingHistory::open_at(const std::string& path,
                                                                    const Clock& clock) {
  NS_ASSIGN_OR_RETURN(storage::Database database, storage::Database::open(path));
  const storage::Migration migrations[] = {{1, history::schema_v1}};
  NS_RETURN_IF_ERROR(database.migrate(migrations));
  std::unique_ptr<TrainingHistory> history(new TrainingHistory(std::move(database), clock));
  NS_ASSIGN_OR_RETURN(history->series_, history::SeriesStore::open(history->database_));
  history->events_ = std::make_unique<history::EventLog>(history->database_, clock);
  return history;
}

Expected<std::unique_ptr<TrainingHistory>> TrainingHistory::open(storage::FileEnv& files,
                                                                 const std::string& path,
                                                                 const Clock& clock) {
  std::string trouble;
  Expected<std::unique_ptr<TrainingHistory>> history = open_at(path, clock);
  if (!history.ok() && history.error().code == ErrorCode::Corrupt) {
    trouble = history.error().message + " It was moved aside and a new history was started.";
    if (move_aside(files, path)) history = open_at(path, clock);
  }
  if (!history.ok()) {
    trouble = history.error().message + " History is kept in memory only until the next start.";
    history = open_at(":memory:", clock);
  }
  if (history.ok() && !trouble.empty()) (*history)->events_->append(LogLevel::Warning, "history", trouble);
  return history;
}

TrainingHistory::TrainingHistory(storage::Database database, const Clock& clock)
    : database_(std::move(database)), clock_(clock) {}

Expected<std::vector<history::Bucket>> TrainingHistory::series(std::string_view name, std::int64_t from,
                                                               std::int64_t to, std::uint32_t max_buckets) {
  std::lock_guard lock(mutex_);
  return series_->query(name, from, to, max_buckets);
}

std::optional<std::uint64_t> TrainingHistory::step_of(std::string_view name, double value,
                                                      std::uint64_t step) {
  constexpr std::int64_t steps = history::max_query_buckets;
  const auto last = static_cast<std::int64_t>(step);
  const auto found =
      series(name, std::max<std::int64_t>(0, last - steps + 1), last, history::max_query_buckets);
  if (!found.ok()) return std::nullopt;
  for (auto bucket = found->rbegin(); bucket != found->rend(); ++bucket)
    if (bucket->width == 1 && bucket->min <= value && value <= bucket->max)
      return static_cast<std::uint64_t>(bucket->first);
  return std::nullopt;
}

std::vector<std::string> TrainingHistory::series_names() {
  std::lock_guard lock(mutex_);
  return series_->names();
}

Expected<history::EventPage> TrainingHistory::events_after(std::int64_t cursor, std::uint32_t limit,
                                                           LogLevel least) {
  std::lock_guard lock(mutex_);
  return events_->after(cursor, limit, least);
}

void TrainingHistory::log(LogLevel level, std::string category, std::string text) {
  std::lock_guard lock(mutex_);
  events_->append(level, std::move(category), std::move(text));
}

void TrainingHistory::add(const StepReport& report) {
  std::unique_lock lock(mutex_);
  const auto step = static_cast<std::int64_t>(report.step);
  // A late or non-finite value can't be shown in a chart; nothing else depends on it.
  const auto put = [this, step](std::string_view name, double value) {
    static_cast<void>(series_->append(name, step, value));
  };
  put("loss", report.loss);
  put("learning_rate", report.learning_rate);
  put("gradient_norm", report.gradient_norm);
  put("tokens_per_second", report.tokens_per_second);
  const StepSeconds& s = report.seconds;
  put("step_seconds", s.data + s.forward_backward + s.optimizer + s.checkpoint_stall + s.evaluation);
  if (report.balance > 0) put("balance", report.balance);
  lock.unlock();
  if (report.validation) add(report.step, *report.validation);
  if (report.step % history_flush_steps == 0) flush();
}

void TrainingHistory::add(std::uint64_t step, const Validation& validation) {
  std::lock_guard lock(mutex_);
  static_cast<void>(series_->append("val_loss", static_cast<std::int64_t>(step), validation.loss));
  if (validation.bits_per_byte > 0) {
    static_cast<void>(
        series_->append("bits_per_byte", static_cast<std::int64_t>(step), validation.bits_per_byte));
  }
}

void TrainingHistory::flush() {
  std::lock_guard lock(mutex_);
  // Records that the disk refuses stay in memory within its bound; the next write tries them again.
  static_cast<void>(series_->flush());
  static_cast<void>(events_->flush());
}

void TrainingHistory::restored(std::uint64_t step, bool keep) {
  std::lock_guard lock(mutex_);
  const WallTime now = clock_.wall_now();
  const auto cut = series_->truncate_after(static_cast<std::int64_t>(step), keep ? &now : nullptr);
  if (!cut.ok()) {
    events_->append(LogLevel::Warning, "history",
                    "Values after the restored step could not be moved to a branch: " + cut.error().message);
  }
}

}  // namespace neuroshard::engine
