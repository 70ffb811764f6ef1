// The schedule against real calendars: its boundaries, both changes of daylight saving time, a zone with half
// an hour, and what "run anyway" may do to it.
#include <QtTest>
#include <ctime>

#include "core/platform/process/local_time.h"
#include "tests/support/test_main.h"
#include "tests/unit/contribute/world.h"

using namespace neuroshard;              // NOLINT
using namespace neuroshard::contribute;  // NOLINT
using neuroshard::testing::World;

class TestTime : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void pauses_outside_and_trains_inside();
  void boundary_is_exact();
  void never_has_no_end();
  void across_a_change_of_the_clock_data();
  void across_a_change_of_the_clock();
  void the_hour_that_comes_twice_counts_twice();
  void run_anyway_ends_at_the_next_boundary();

 private:
  static World berlin(const char* schedule) {
    set_zone("CET-1CEST,M3.5.0,M10.5.0/3");
    World world;
    world.local_time = platform::local_time;
    world.rules.schedule = WeekHours::parse(schedule).value();
    return world;
  }
  static void set_zone(const char* zone) {
    qputenv("TZ", zone);
    tzset();
  }
  // Of the zone that is set.
  static WallTime at(int year, int month, int day, int hour, int minute = 0) {
    std::tm local{};
    local.tm_year = year - 1900;
    local.tm_mon = month - 1;
    local.tm_mday = day;
    local.tm_hour = hour;
    local.tm_min = minute;
    local.tm_isdst = -1;
    return WallTime(std::chrono::seconds(std::mktime(&local)));
  }
};

void TestTime::pauses_outside_and_trains_inside() {
  World world = berlin("mon-fri 18-24; sat-sun");
  world.wall = at(2026, 11, 20, 17, 59);  // a Friday
  QCOMPARE(world.keys(), std::string("schedule"));
  const node::PauseReason reason = world.reason("schedule");
  QCOMPARE(reason.text, std::string("outside the hours of your schedule until 18:00"));
  QVERIFY(reason.until == at(2026, 11, 20, 18));
  QVERIFY(reason.can_override);
  QCOMPARE(world.sensor("schedule").value, std::string("outside your hours until 18:00"));
  world.wall = at(2026, 11, 20, 18);
  QCOMPARE(world.keys(), std::string());
  QCOMPARE(world.sensor("schedule").value, std::string("inside your hours until Mon 00:00"));
  world.wall = at(2026, 11, 23, 0);
  QCOMPARE(world.keys(), std::string("schedule"));
  world.rules.schedule = WeekHours::always();
  QCOMPARE(world.keys(), std::string());
  QVERIFY(world.sensor("schedule").key.empty());
}

void TestTime::boundary_is_exact() {
  World world = berlin("daily 22-6");
  const WallTime end = at(2026, 11, 20, 6);
  world.wall = end - std::chrono::milliseconds(1);
  QCOMPARE(world.keys(), std::string());
  world.wall = end;
  QCOMPARE(world.keys(), std::string("schedule"));
  QVERIFY(world.reason("schedule").until == at(2026, 11, 20, 22));
}

void TestTime::never_has_no_end() {
  World world = berlin("never");
  QVERIFY(!world.reason("schedule").until);
  QVERIFY(world.reason("schedule").text.find("no hour") != std::string::npos);
}

void TestTime::across_a_change_of_the_clock_data() {
  QTest::addColumn<QByteArray>("zone");
  QTest::addColumn<QDateTime>("now");   // UTC
  QTest::addColumn<QDateTime>("next");  // UTC
  const auto utc = [](int month, int day, int hour, int minute = 0) {
    return QDateTime(QDate(2026, month, day), QTime(hour, minute), Qt::UTC);
  };
  const QByteArray berlin = "CET-1CEST,M3.5.0,M10.5.0/3";
  // Allowed from 22 to 6 local time.
  QTest::newRow("winter night") << berlin << utc(1, 10, 12) << utc(1, 10, 21);
  QTest::newRow("into summer time") << berlin << utc(3, 28, 21, 30) << utc(3, 29, 4);      // 6:00 CEST
  QTest::newRow("out of summer time") << berlin << utc(10, 24, 20, 30) << utc(10, 25, 5);  // 6:00 CET
  QTest::newRow("the day after") << berlin << utc(10, 25, 10) << utc(10, 25, 21);
  QTest::newRow("half an hour's zone") << QByteArray("IST-5:30") << utc(6, 1, 3) << utc(6, 1, 16, 30);
}

void TestTime::across_a_change_of_the_clock() {
  QFETCH(QByteArray, zone);
  QFETCH(QDateTime, now);
  QFETCH(QDateTime, next);
  set_zone(zone.constData());
  const auto change =
      next_change(WeekHours::parse("daily 22-6").value(),
                  WallTime(std::chrono::milliseconds(now.toMSecsSinceEpoch())), platform::local_time);
  QVERIFY(change);
  QCOMPARE(QDateTime::fromMSecsSinceEpoch(to_unix_ms(*change), Qt::UTC), next);
}

void TestTime::the_hour_that_comes_twice_counts_twice() {
  World world = berlin("sun 2-3");
  // On 2026-10-25 two o'clock comes at 0:00 and at 1:00 UTC; on 2026-03-29 it does not come at all.
  const auto minutes_allowed = [&](QDateTime from) {
    int minutes = 0;
    for (int i = 0; i < 24 * 60; ++i) {
      world.wall = WallTime(std::chrono::milliseconds(from.addSecs(60 * i).toMSecsSinceEpoch()));
      if (world.keys().empty()) ++minutes;
    }
    return minutes;
  };
  QCOMPARE(minutes_allowed(QDateTime(QDate(2026, 10, 24), QTime(22, 0), Qt::UTC)), 120);
  QCOMPARE(minutes_allowed(QDateTime(QDate(2026, 3, 28), QTime(23, 0), Qt::UTC)), 0);
  // Still, the week after it is found.
  const auto change = next_change(world.rules.schedule, at(2026, 3, 29, 0), platform::local_time);
  QVERIFY(change && *change == at(2026, 4, 5, 2));
}

void TestTime::run_anyway_ends_at_the_next_boundary() {
  World world = berlin("daily 22-6");
  const WallTime noon = at(2026, 11, 20, 12);
  const auto end = [&](std::chrono::hours duration) {
    return override_end(world.rules, noon, duration, platform::local_time);
  };
  QVERIFY(end(std::chrono::hours(2)) == at(2026, 11, 20, 14));
  QVERIFY(end(std::chrono::hours(24)) == at(2026, 11, 20, 22));
  // The schedule has the say again from there, and at its next end.
  world.wishes.overridden_until = end(std::chrono::hours(24));
  world.wall = noon;
  QCOMPARE(world.keys(), std::string());
  world.wall = at(2026, 11, 21, 6);
  QCOMPARE(world.keys(), std::string("schedule"));
  world.rules.schedule = WeekHours::always();
  QVERIFY(end(std::chrono::hours(24)) == at(2026, 11, 21, 12));
}

NS_TEST(TestTime)
#include "test_time.moc"
