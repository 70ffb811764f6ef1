// Hours of the week: what people write, what is written back, and what is refused.
#include <QtTest>

#include "core/base/rng.h"
#include "core/base/week_hours.h"
#include "tests/support/test_main.h"

using namespace neuroshard;  // NOLINT

class TestWeekHours : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void text_is_written_back_data();
  void text_is_written_back();
  void hours_are_where_they_should_be();
  void nonsense_is_refused_data();
  void nonsense_is_refused();
  void every_grid_survives_its_text();
};

void TestWeekHours::text_is_written_back_data() {
  QTest::addColumn<QString>("text");
  QTest::addColumn<QString>("regular");
  QTest::newRow("always") << " Always "
                          << "always";
  QTest::newRow("never") << "never"
                         << "never";
  QTest::newRow("all days") << "daily"
                            << "always";
  QTest::newRow("week") << "mon-fri 0-8,18-24; sat-sun"
                        << "mon-fri 0-8,18-24; sat-sun";
  QTest::newRow("single days") << "mon,WED 8-18"
                               << "mon,wed 8-18";
  QTest::newRow("long names") << "monday-thursday 8-9"
                              << "mon-thu 8-9";
  QTest::newRow("past midnight") << "daily 22-6"
                                 << "daily 0-6,22-24";
  QTest::newRow("sunday into monday") << "sun 22-6"
                                      << "mon 0-6; sun 22-24";
  QTest::newRow("over the week's end") << "sat-mon"
                                       << "mon,sat-sun";
  QTest::newRow("no spaces") << "tue8-9"
                             << "tue 8-9";
  QTest::newRow("overlapping") << "mon 8-12,10-14; mon 14-15"
                               << "mon 8-15";
}

void TestWeekHours::text_is_written_back() {
  QFETCH(QString, text);
  QFETCH(QString, regular);
  const auto grid = WeekHours::parse(text.toStdString());
  QVERIFY2(grid.ok(), grid.ok() ? "" : grid.error().message.c_str());
  QCOMPARE(QString::fromStdString(grid->text()), regular);
}

void TestWeekHours::hours_are_where_they_should_be() {
  const auto grid = WeekHours::parse("fri 22-2");
  QVERIFY(grid.ok());
  int allowed = 0;
  for (int day = 0; day < WeekHours::days; ++day) {
    for (int hour = 0; hour < WeekHours::hours; ++hour) allowed += grid->at(day, hour) ? 1 : 0;
  }
  QCOMPARE(allowed, 4);
  QVERIFY(grid->at(4, 22) && grid->at(4, 23) && grid->at(5, 0) && grid->at(5, 1));
}

void TestWeekHours::nonsense_is_refused_data() {
  QTest::addColumn<QByteArray>("text");
  QTest::addColumn<QByteArray>("named");  // what the message must name
  QTest::newRow("empty") << QByteArray() << QByteArray("day");
  QTest::newRow("no such day") << QByteArray("mon; lundi 8-9") << QByteArray("lundi");
  QTest::newRow("hour 25") << QByteArray("mon 8-25") << QByteArray("8-25");
  QTest::newRow("nothing between") << QByteArray("mon 8-8") << QByteArray("8-8");
  QTest::newRow("from 24") << QByteArray("mon 24-2") << QByteArray("24-2");
  QTest::newRow("minutes") << QByteArray("mon 8:30-9") << QByteArray("8:30-9");
  QTest::newRow("open") << QByteArray("mon 8-") << QByteArray("8-");
  QTest::newRow("hours only") << QByteArray("8-18") << QByteArray("day");
  QTest::newRow("too long") << QByteArray(600, 'm') << QByteArray("512");
  QTest::newRow("bytes") << QByteArray("\xff\x00;-,", 5) << QByteArray("day");
}

void TestWeekHours::nonsense_is_refused() {
  QFETCH(QByteArray, text);
  QFETCH(QByteArray, named);
  const auto grid = WeekHours::parse(text.toStdString());
  QVERIFY(!grid.ok());
  QCOMPARE(grid.error().code, ErrorCode::InvalidArgument);
  QVERIFY2(QByteArray::fromStdString(grid.error().message).contains(named), grid.error().message.c_str());
}

void TestWeekHours::every_grid_survives_its_text() {
  Rng rng(7);
  std::size_t longest = 0;
  for (int round = 0; round < 300; ++round) {
    WeekHours grid;
    const std::uint64_t density = 1 + rng.below(9);
    for (int day = 0; day < WeekHours::days; ++day) {
      for (int hour = 0; hour < WeekHours::hours; ++hour) grid.set(day, hour, rng.below(10) < density);
    }
    longest = std::max(longest, grid.text().size());
    const auto again = WeekHours::parse(grid.text());
    QVERIFY2(again.ok(), grid.text().c_str());
    QVERIFY(*again == grid);
  }
  // The longest of all: every other hour, alternating, so that no two neighbours are alike.
  WeekHours chequered;
  for (int day = 0; day < WeekHours::days; ++day) {
    for (int hour = day == 3; hour < WeekHours::hours; hour += 2) chequered.set(day, hour, true);
    chequered.set(day, 23, day % 2 == 0);
    chequered.set(day, day + 7, false);
  }
  longest = std::max(longest, chequered.text().size());
  QVERIFY(WeekHours::parse(chequered.text()).ok());
  QVERIFY(longest <= WeekHours::max_text);
}

NS_TEST(TestWeekHours)
#include "test_week_hours.moc"
