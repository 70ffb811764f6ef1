// Events for people: a bounded list in state.db, read by cursor. Not the program's log file.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/base/clock.h"
#include "core/base/expected.h"
#include "core/base/log.h"
#include "core/storage/database.h"

namespace neuroshard::history {

inline constexpr std::uint32_t max_events = 10'000;       // the oldest go
inline constexpr std::size_t max_event_bytes = 1'000;     // longer texts are cut
inline constexpr std::size_t max_unwritten_events = 256;  // while the disk refuses them; then the oldest go
inline constexpr std::uint32_t max_events_per_query = 500;

struct Event {
  std::int64_t sequence = 0;  // ascending; gaps are events that a full disk or the bound took away
  std::int64_t time_ms = 0;
  LogLevel level = LogLevel::Info;
  std::string category;  // "checkpoint", "data", "train" …
  std::string text;
};

struct EventPage {
  std::vector<Event> events;  // ascending
  std::int64_t next = 0;      // cursor for the following page; below the query's: that one is of another log
  bool more = false;
};

// Threads: one; the database's.
class EventLog {
 public:
  // Over a database that has schema_v1; it outlives the log.
  explicit EventLog(storage::Database& database, const Clock& clock) : database_(database), clock_(clock) {}

  // Remembers it; what the disk refuses is tried again with the next one.
  void append(LogLevel level, std::string category, std::string text);
  Expected<void> flush();
  std::uint64_t dropped() const { return dropped_; }

  // Events of at least `level` after the cursor (0: from the oldest), at most `limit` (1 …
  // max_events_per_query). A cursor beyond the newest event goes back to it.
  Expected<EventPage> after(std::int64_t cursor, std::uint32_t limit, LogLevel level = LogLevel::Debug);

 private:
  storage::Database& database_;
  const Clock& clock_;
  std::vector<Event> unwritten_;
  std::uint64_t dropped_ = 0;
};

}  // namespace neuroshard::history
