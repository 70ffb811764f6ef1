// The log view's model and feed: bounded, append-only, filtered in slices, fed in batches however fast the
// core writes.
#include <QAbstractItemModelTester>
#include <QSignalSpy>
#include <QtTest>

#include "tests/support/fake_node.h"
#include "tests/support/test_main.h"
#include "ui/bridge/bridge.h"
#include "ui/models/log_feed.h"
#include "ui/models/log_model.h"

using namespace neuroshard;      // NOLINT
using namespace neuroshard::ui;  // NOLINT
using testing::FakeNode;

namespace {

node::LogEntry entry(std::uint64_t sequence, const std::string& message, LogLevel level = LogLevel::Info,
                     const std::string& category = "train") {
  return {sequence,
          WallTime(std::chrono::milliseconds(1'700'000'000'000 + static_cast<std::int64_t>(sequence))),
          {level, category, message}};
}

std::vector<node::LogEntry> many(std::uint64_t first, std::uint64_t count) {
  std::vector<node::LogEntry> entries;
  for (std::uint64_t i = 0; i < count; ++i)
    entries.push_back(entry(first + i, "step " + std::to_string(first + i)));
  return entries;
}

QString message(const LogModel& model, int row) {
  return model.index(row, LogModel::Message).data().toString();
}

}  // namespace

class TestLogModel : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void lines_are_appended_and_never_reset();
  void the_oldest_lines_go_at_the_bound();
  void an_excerpt_stays_while_the_log_goes_on();
  void gaps_stand_where_they_are();
  void filters_by_level_category_and_expression();
  void a_filter_is_applied_in_slices();
  void lines_that_come_while_filtering_are_in_order();
  void trimming_while_filtering_keeps_what_is_shown_right();
  void the_feed_reads_all_pages_in_batches();
  void the_feed_bounds_what_waits();
  void the_feed_tells_a_failure();
  void the_feed_begins_anew_with_another_core();
  void the_feed_begins_anew_with_another_history();
};

void TestLogModel::lines_are_appended_and_never_reset() {
  LogModel model;
  QAbstractItemModelTester tester(&model);
  QSignalSpy reset(&model, &QAbstractItemModel::modelReset),
      inserted(&model, &QAbstractItemModel::rowsInserted);
  model.append(many(1, 500), 0);
  model.append(many(501, 500), 0);
  QCOMPARE(model.rowCount(), 1000);
  QCOMPARE(inserted.size(), 2);  // one per batch
  QCOMPARE(reset.size(), 0);
  QCOMPARE(message(model, 999), QStringLiteral("step 1000"));
  QVERIFY(model.text(0).endsWith(QStringLiteral("info  train  step 1")));
  model.clear();
  QCOMPARE(model.rowCount(), 0);
  model.append(many(1, 3), 0);
  QCOMPARE(model.rowCount(), 3);
}

void TestLogModel::the_oldest_lines_go_at_the_bound() {
  LogModel model;
  for (std::uint64_t first = 1; first <= LogModel::max_lines + 3000; first += 1000)
    model.append(many(first, 1000), 0);
  QCOMPARE(model.lines(), LogModel::max_lines);
  QCOMPARE(model.rowCount(), LogModel::max_lines);
  QCOMPARE(message(model, 0), QStringLiteral("step 3001"));
  QCOMPARE(message(model, model.rowCount() - 1), QStringLiteral("step %1").arg(LogModel::max_lines + 3000));
}

void TestLogModel::an_excerpt_stays_while_the_log_goes_on() {
  LogModel model;
  model.append(many(1, 3000), 0);
  const LogExcerpt all = model.shown_lines();
  const LogExcerpt some = model.shown_lines({{0, 1}, {1022, 1025}});
  model.append(many(3001, LogModel::max_lines), 0);  // the first 3000 are gone
  model.clear();
  model.append(many(60'000, 10), 0);
  QCOMPARE(all.size(), 3000);
  for (qsizetype i = 0; i < all.size(); ++i) QCOMPARE(all[i].sequence, static_cast<quint64>(i + 1));
  QList<quint64> chosen;
  for (qsizetype i = 0; i < some.size(); ++i) chosen << some[i].sequence;
  QCOMPARE(chosen, (QList<quint64>{1, 2, 1023, 1024, 1025, 1026}));
  QCOMPARE(model.rowCount(), 10);
  QCOMPARE(model.line(9).sequence, 60'009u);
  QCOMPARE(LogModel().shown_lines().size(), 0);
}

void TestLogModel::gaps_stand_where_they_are() {
  LogModel model;
  model.append(many(1, 2), 0);
  model.append(many(1003, 1), 1000);
  QCOMPARE(model.rowCount(), 4);
  QVERIFY(message(model, 2).contains(QStringLiteral("1,000")));
  QCOMPARE(message(model, 3), QStringLiteral("step 1003"));
  QCOMPARE(model.dropped(), quint64{1000});
}

void TestLogModel::filters_by_level_category_and_expression() {
  LogModel model;
  QAbstractItemModelTester tester(&model);
  QSignalSpy categories(&model, &LogModel::category_seen);
  model.append({entry(1, "loss 4.2"), entry(2, "disk low", LogLevel::Warning, "storage"),
                entry(3, "detail", LogLevel::Debug), entry(4, "disk full", LogLevel::Error, "storage")},
               0);
  QCOMPARE(categories.size(), 2);
  QCOMPARE(model.rowCount(), 3);  // debug is not asked for
  LogFilter filter;
  filter.least = LogLevel::Warning;
  model.set_filter(filter);
  QTRY_VERIFY(!model.filtering());
  QCOMPARE(model.rowCount(), 2);
  filter = {LogLevel::Debug, QStringLiteral("storage"), QRegularExpression(QStringLiteral("f.ll$"))};
  model.set_filter(filter);
  QTRY_COMPARE(model.rowCount(), 1);
  QCOMPARE(message(model, 0), QStringLiteral("disk full"));
  model.append({entry(5, "it fell", LogLevel::Info, "storage"), entry(6, "cell", LogLevel::Info, "storage")},
               0);
  QCOMPARE(model.rowCount(), 2);
}

void TestLogModel::a_filter_is_applied_in_slices() {
  LogModel model;
  for (std::uint64_t first = 1; first <= 20'000; first += 1000) model.append(many(first, 1000), 0);
  QSignalSpy inserted(&model, &QAbstractItemModel::rowsInserted);
  model.set_filter({LogLevel::Info, {}, QRegularExpression(QStringLiteral("step"))});
  QVERIFY(model.filtering());
  QCOMPARE(inserted.size(), 0);  // nothing inside the call
  QTRY_VERIFY(!model.filtering());
  QCOMPARE(model.rowCount(), 20'000);
  for (const auto& call : inserted) QVERIFY(call[2].toInt() - call[1].toInt() + 1 <= LogModel::slice);
}

void TestLogModel::lines_that_come_while_filtering_are_in_order() {
  LogModel model;
  model.append(many(1, 10'000), 0);
  model.set_filter({LogLevel::Info, {}, QRegularExpression(QStringLiteral("0$"))});
  model.append(many(10'001, 10), 0);
  QTRY_VERIFY(!model.filtering());
  QCOMPARE(model.rowCount(), 1001);
  QCOMPARE(message(model, 1000), QStringLiteral("step 10010"));
  QCOMPARE(message(model, 999), QStringLiteral("step 10000"));
}

void TestLogModel::trimming_while_filtering_keeps_what_is_shown_right() {
  LogModel model;
  model.append(many(1, LogModel::max_lines), 0);
  model.set_filter({LogLevel::Info, {}, QRegularExpression(QStringLiteral("0$"))});
  QCoreApplication::processEvents();  // some slices
  model.append(many(LogModel::max_lines + 1, 20'000), 0);
  QTRY_VERIFY(!model.filtering());
  QCOMPARE(model.rowCount(), LogModel::max_lines / 10);
  QCOMPARE(message(model, 0), QStringLiteral("step 20010"));
}

void TestLogModel::the_feed_reads_all_pages_in_batches() {
  auto node = std::make_shared<FakeNode>();
  node->logs = many(1, 5'000);
  Bridge bridge;
  bridge.attach(node);
  LogModel model;
  QSignalSpy inserted(&model, &QAbstractItemModel::rowsInserted);
  LogFeed feed(bridge, model);
  feed.start();
  QTRY_COMPARE(model.rowCount(), 5'000);
  QCOMPARE(message(model, 4'999), QStringLiteral("step 5000"));
  // Ten pages came as fewer batches, none larger than what may wait.
  QVERIFY2(inserted.size() <= 5, qPrintable(QString::number(inserted.size())));
  node->logs.push_back(entry(5'001, "later"));
  QTRY_COMPARE(model.rowCount(), 5'001);
  feed.stop();
  bridge.attach(nullptr);
}

void TestLogModel::the_feed_bounds_what_waits() {
  auto node = std::make_shared<FakeNode>();
  node->logs = many(1, 30'000);
  Bridge bridge;
  bridge.attach(node);
  LogModel model;
  QSignalSpy inserted(&model, &QAbstractItemModel::rowsInserted);
  LogFeed feed(bridge, model);
  feed.start();
  QTRY_COMPARE_WITH_TIMEOUT(model.rowCount(), 30'000, 30'000);
  for (const auto& call : inserted)
    QVERIFY(call[2].toInt() - call[1].toInt() + 1 <= static_cast<int>(LogFeed::max_waiting));
  bridge.attach(nullptr);
}

void TestLogModel::the_feed_tells_a_failure() {
  auto node = std::make_shared<FakeNode>();
  node->fail_queries(make_error(ErrorCode::Io, "state.db can't be read"));
  Bridge bridge;
  bridge.attach(node);
  LogModel model;
  LogFeed feed(bridge, model);
  QSignalSpy failed(&feed, &LogFeed::failed);
  feed.start();
  QTRY_VERIFY(!failed.isEmpty());
  QVERIFY(failed.front().front().toString().contains(QStringLiteral("state.db")));
  node->fail_queries({});
  node->logs = many(1, 3);
  QTRY_COMPARE(model.rowCount(), 3);  // it goes on asking
  bridge.attach(nullptr);
}

void TestLogModel::the_feed_begins_anew_with_another_core() {
  auto first = std::make_shared<FakeNode>(), second = std::make_shared<FakeNode>();
  first->logs = many(1, 20);
  first->publish([](node::Snapshot& next) { next.identity.instance_id = "one"; });
  for (std::uint64_t i = 1; i <= 30; ++i) second->logs.push_back(entry(i, "other " + std::to_string(i)));
  second->publish([](node::Snapshot& next) { next.identity.instance_id = "two"; });
  Bridge bridge;
  LogModel model;
  QAbstractItemModelTester tester(&model);
  LogFeed feed(bridge, model);
  bridge.attach(first);
  feed.start();
  QTRY_COMPARE(model.rowCount(), 20);
  bridge.attach(nullptr);
  QTest::qWait(150);
  QCOMPARE(model.rowCount(), 20);  // the last lines of a core that is gone stay
  bridge.attach(second);
  QTRY_COMPARE(model.rowCount(), 30);
  QCOMPARE(message(model, 0), QStringLiteral("other 1"));
  QCOMPARE(message(model, 29), QStringLiteral("other 30"));
  bridge.attach(nullptr);
}

void TestLogModel::the_feed_begins_anew_with_another_history() {
  auto node = std::make_shared<FakeNode>();
  node->logs = many(1, 20);
  Bridge bridge;
  bridge.attach(node);
  LogModel model;
  LogFeed feed(bridge, model);
  feed.start();
  QTRY_COMPARE(model.rowCount(), 20);
  node->logs = {entry(1, "new")};
  QTRY_COMPARE(model.rowCount(), 1);
  QCOMPARE(message(model, 0), QStringLiteral("new"));
  bridge.attach(nullptr);
}

NS_UI_TEST(TestLogModel)
#include "test_log_model.moc"
