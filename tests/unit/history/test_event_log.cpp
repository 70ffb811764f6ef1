// The event log as a person pages through it.
#include <QTemporaryDir>
#include <QtTest>

#include "core/history/event_log.h"
#include "core/history/schema.h"
#include "tests/support/test_main.h"

using neuroshard::LogLevel;
using neuroshard::ManualClock;
using neuroshard::storage::Database;
using neuroshard::storage::DatabaseOptions;
using neuroshard::storage::Migration;
namespace history = neuroshard::history;

namespace {
Database open_database(const std::string& path) {
  auto database = Database::open(path);
  NS_CHECK(database.ok());
  const Migration migrations[] = {{1, history::schema_v1}};
  NS_CHECK(database->migrate(migrations).ok());
  return std::move(*database);
}
}  // namespace

class TestEventLog : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void pages_by_cursor();
  void a_cursor_of_another_log_goes_back();
  void filters_by_level();
  void survives_restarts();
  void is_bounded();
  void long_texts_stay_utf8();
  void waits_for_the_disk();
};

void TestEventLog::pages_by_cursor() {
  Database database = open_database(":memory:");
  ManualClock clock;
  history::EventLog log(database, clock);
  for (int i = 0; i < 7; ++i) {
    log.append(LogLevel::Info, "train", "event " + std::to_string(i));
    clock.advance(std::chrono::seconds(1));
  }
  std::vector<std::string> texts;
  std::int64_t cursor = 0;
  int pages = 0;
  bool more = true;
  while (more) {
    const auto page = log.after(cursor, 3);
    QVERIFY(page.ok());
    for (const auto& event : page->events) {
      QVERIFY(event.sequence > cursor);
      cursor = event.sequence;
      texts.push_back(event.text);
    }
    QCOMPARE(page->next, cursor);
    more = page->more;
    ++pages;
  }
  QCOMPARE(pages, 3);
  QCOMPARE(texts.size(), std::size_t{7});
  QCOMPARE(texts.front(), std::string("event 0"));
  QCOMPARE(texts.back(), std::string("event 6"));
  // Nothing new: the cursor stays; then exactly the new one.
  QCOMPARE(log.after(cursor, 3)->next, cursor);
  log.append(LogLevel::Info, "train", "new");
  QCOMPARE(log.after(cursor, 3)->events.size(), std::size_t{1});
  const auto newest = log.after(cursor - 1, 2);
  QCOMPARE(newest->events.size(), std::size_t{2});
  QCOMPARE(newest->events[0].text, std::string("event 6"));
  QCOMPARE(newest->events[1].text, std::string("new"));
  QCOMPARE(newest->events[1].time_ms - newest->events[0].time_ms, std::int64_t{1000});
}

void TestEventLog::a_cursor_of_another_log_goes_back() {
  Database database = open_database(":memory:");
  ManualClock clock;
  history::EventLog log(database, clock);
  QCOMPARE(log.after(9, 3)->next, std::int64_t{0});
  log.append(LogLevel::Info, "train", "first");
  log.append(LogLevel::Info, "train", "second");
  const auto page = log.after(9, 3);
  QVERIFY(page.ok() && page->events.empty() && !page->more);
  QCOMPARE(page->next, std::int64_t{2});
  // Events of a lower level count: they are of the same log.
  QCOMPARE(log.after(1, 3, LogLevel::Error)->next, std::int64_t{1});
}

void TestEventLog::filters_by_level() {
  Database database = open_database(":memory:");
  const ManualClock clock;
  history::EventLog log(database, clock);
  log.append(LogLevel::Info, "train", "fine");
  log.append(LogLevel::Error, "checkpoint", "disk full");
  log.append(LogLevel::Debug, "data", "detail");
  const auto page = log.after(0, 10, LogLevel::Warning);
  QCOMPARE(page->events.size(), std::size_t{1});
  QCOMPARE(page->events[0].text, std::string("disk full"));
  QCOMPARE(page->events[0].category, std::string("checkpoint"));
  QCOMPARE(page->events[0].level, LogLevel::Error);
}

void TestEventLog::survives_restarts() {
  const QTemporaryDir directory;
  const std::string path = directory.filePath("state.db").toStdString();
  const ManualClock clock;
  for (int i = 0; i < 2; ++i) {
    Database database = open_database(path);
    history::EventLog log(database, clock);
    log.append(LogLevel::Info, "engine", "start");
    QCOMPARE(log.after(0, 10)->events.size(), static_cast<std::size_t>(i + 1));
  }
}

void TestEventLog::is_bounded() {
  Database database = open_database(":memory:");
  const ManualClock clock;
  history::EventLog log(database, clock);
  for (std::uint32_t i = 0; i < history::max_events + 50; ++i)
    log.append(LogLevel::Info, "x", std::to_string(i));
  auto rows = database.prepare("SELECT COUNT(*) FROM events");
  QVERIFY(rows.ok() && *rows->step());
  QCOMPARE(rows->column_int(0), std::int64_t{history::max_events});
  QCOMPARE(log.after(0, 1)->events.front().text, std::string("50"));
  QCOMPARE(log.after(0, 100'000)->events.size(), static_cast<std::size_t>(history::max_events_per_query));
}

void TestEventLog::long_texts_stay_utf8() {
  Database database = open_database(":memory:");
  const ManualClock clock;
  history::EventLog log(database, clock);
  std::string text = "x";
  while (text.size() < 2 * history::max_event_bytes) text += "\xC3\xA4";  // ä
  log.append(LogLevel::Info, "x", text);
  const std::string stored = log.after(0, 1)->events.front().text;
  QVERIFY(stored.size() <= history::max_event_bytes && stored.size() + 4 > history::max_event_bytes);
  QVERIFY(QString::fromStdString(stored).toStdString() == stored);
}

void TestEventLog::waits_for_the_disk() {
  const QTemporaryDir directory;
  const std::string path = directory.filePath("state.db").toStdString();
  { Database create = open_database(path); }
  DatabaseOptions options;
  options.read_only = true;
  auto database = Database::open(path, options);
  QVERIFY(database.ok());
  const ManualClock clock;
  history::EventLog log(*database, clock);
  for (std::size_t i = 0; i < history::max_unwritten_events + 3; ++i) log.append(LogLevel::Info, "x", "text");
  QVERIFY(!log.flush().ok());
  QCOMPARE(log.dropped(), std::uint64_t{3});
  QVERIFY(log.after(0, 10)->events.empty());
}

NS_TEST(TestEventLog)
#include "test_event_log.moc"
