// When to look for releases: never twice a day, and at moments that chance chooses.
#include <QtTest>

#include "core/release/schedule.h"
#include "tests/support/test_main.h"

using namespace neuroshard;
using namespace neuroshard::release;

class TestReleaseSchedule : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void switching_on_looks_at_once_but_not_twice_a_day();
  void the_next_look_is_a_day_or_more_away();
  void a_start_keeps_the_moment_that_was_chosen();
  void a_late_look_waits_a_little_after_a_start();
  void a_clock_that_was_wrong_does_not_end_looking();
  void chance_is_spread();
};

namespace {

const WallTime now{std::chrono::milliseconds(1'795'000'000'000)};

Chance least() {
  return [](std::uint64_t) { return std::uint64_t{0}; };
}
Chance most() {
  return [](std::uint64_t bound) { return bound - 1; };
}

}  // namespace

void TestReleaseSchedule::switching_on_looks_at_once_but_not_twice_a_day() {
  QVERIFY(first_look({}, now) == now);
  QVERIFY(first_look(now - std::chrono::hours(25), now) == now);
  QVERIFY(first_look(now - std::chrono::hours(1), now) == now + std::chrono::hours(23));
  QVERIFY(first_look(now + std::chrono::hours(1000), now) == now);  // the clock was wrong then
}

void TestReleaseSchedule::the_next_look_is_a_day_or_more_away() {
  QVERIFY(next_look(now, least()) == now + shortest_pause);
  QVERIFY(next_look(now, most()) == now + shortest_pause + longest_delay - std::chrono::milliseconds(1));
}

void TestReleaseSchedule::a_start_keeps_the_moment_that_was_chosen() {
  const WallTime chosen = now + std::chrono::hours(7);
  QVERIFY(look_after_start(chosen, now, least()) == chosen &&
          look_after_start(chosen, now, most()) == chosen);
}

void TestReleaseSchedule::a_late_look_waits_a_little_after_a_start() {
  for (const std::optional<WallTime> late : {std::optional<WallTime>(now - std::chrono::hours(200)),
                                             std::optional<WallTime>(now), std::optional<WallTime>()}) {
    QVERIFY(look_after_start(late, now, least()) == now);
    QVERIFY(look_after_start(late, now, most()) == now + start_spread - std::chrono::milliseconds(1));
  }
}

void TestReleaseSchedule::a_clock_that_was_wrong_does_not_end_looking() {
  QVERIFY(look_after_start(now + std::chrono::hours(24 * 365), now, least()) == now + shortest_pause);
}

void TestReleaseSchedule::chance_is_spread() {
  const Chance one = system_chance(), other = system_chance();
  bool differs = false;
  for (int i = 0; i < 20; ++i) {
    const std::uint64_t value = one(1000);
    QVERIFY(value < 1000);
    differs = differs || value != other(1000);
  }
  QVERIFY(differs);
}

NS_TEST(TestReleaseSchedule)
#include "test_schedule.moc"
