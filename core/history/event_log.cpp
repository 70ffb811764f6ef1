#include "core/history/event_log.h"

#include <algorithm>

#include "core/base/utf8.h"

namespace neuroshard::history {
namespace {

Expected<EventPage> collect(storage::Statement& statement, std::uint32_t limit) {
  EventPage page;
  while (true) {
    NS_ASSIGN_OR_RETURN(const bool row, statement.step());
    if (!row) break;
    if (page.events.size() == limit) {
      page.more = true;
      break;
    }
    Event event;
    event.sequence = statement.column_int(0);
    event.time_ms = statement.column_int(1);
    event.level = static_cast<LogLevel>(std::clamp<std::int64_t>(statement.column_int(2), 0, 3));
    event.category = std::string(statement.column_text(3));
    event.text = std::string(statement.column_text(4));
    page.events.push_back(std::move(event));
  }
  return page;
}

std::uint32_t bounded_limit(std::uint32_t limit) {
  return std::clamp(limit, 1u, max_events_per_query);
}

}  // namespace

void EventLog::append(LogLevel level, std::string category, std::string text) {
  Event event;
  event.time_ms = to_unix_ms(clock_.wall_now());
  event.level = level;
  event.category = valid_utf8(category, max_event_bytes);
  event.text = valid_utf8(text, max_event_bytes);
  unwritten_.push_back(std::move(event));
  if (flush().ok()) return;
  if (unwritten_.size() > max_unwritten_events) {
    unwritten_.erase(unwritten_.begin());
    ++dropped_;
  }
}

Expected<void> EventLog::flush() {
  if (unwritten_.empty()) return {};
  NS_ASSIGN_OR_RETURN(storage::Transaction transaction, storage::Transaction::begin(database_));
  NS_ASSIGN_OR_RETURN(
      storage::Statement insert,
      database_.prepare("INSERT INTO events (time_ms, level, category, text) VALUES (?1, ?2, ?3, ?4)"));
  for (const Event& event : unwritten_) {
    insert.bind(1, event.time_ms);
    insert.bind(2, static_cast<std::int64_t>(event.level));
    insert.bind(3, event.category);
    insert.bind(4, event.text);
    NS_RETURN_IF_ERROR(insert.run());
  }
  NS_ASSIGN_OR_RETURN(storage::Statement trim, database_.prepare("DELETE FROM events WHERE sequence <= ?1"));
  trim.bind(1, database_.last_insert_id() - std::int64_t{max_events});
  NS_RETURN_IF_ERROR(trim.run());
  NS_RETURN_IF_ERROR(transaction.commit());
  unwritten_.clear();
  return {};
}

Expected<EventPage> EventLog::after(std::int64_t cursor, std::uint32_t limit, LogLevel level) {
  NS_ASSIGN_OR_RETURN(storage::Statement select,
                      database_.prepare("SELECT sequence, time_ms, level, category, text FROM events "
                                        "WHERE sequence > ?1 AND level >= ?2 ORDER BY sequence LIMIT ?3"));
  limit = bounded_limit(limit);
  select.bind(1, cursor);
  select.bind(2, static_cast<std::int64_t>(level));
  select.bind(3, std::int64_t{limit} + 1);
  NS_ASSIGN_OR_RETURN(EventPage page, collect(select, limit));
  if (!page.events.empty()) {
    page.next = page.events.back().sequence;
    return page;
  }
  NS_ASSIGN_OR_RETURN(storage::Statement newest, database_.prepare("SELECT max(sequence) FROM events"));
  NS_RETURN_IF_ERROR(newest.step());
  page.next = std::min(cursor, newest.column_int(0));  // NULL, of an empty table, reads as 0
  return page;
}

}  // namespace neuroshard::history
