// The speed of a stage, as its node states it.
#include <QtTest>

#include "core/engine/stage_speed.h"
#include "tests/support/test_main.h"

using namespace neuroshard;  // NOLINT
using neuroshard::engine::StageSpeed;

class TestStageSpeed : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void a_few_steps_say_nothing() {
    StageSpeed speed;
    for (std::size_t step = 0; step < StageSpeed::least_steps; ++step) {
      QVERIFY(!speed.tokens_per_second());
      speed.add(1000, std::chrono::milliseconds(500));
    }
    QCOMPARE(speed.tokens_per_second().value_or(0), 2000.0);
    speed.clear();
    QVERIFY(!speed.tokens_per_second());
  }
  // A suspension, or another program for a moment.
  void a_slow_step_changes_nothing() {
    StageSpeed speed;
    for (int step = 0; step < 10; ++step)
      speed.add(1000, std::chrono::milliseconds(step % 4 == 0 ? 90'000 : 500));
    QCOMPARE(speed.tokens_per_second().value_or(0), 2000.0);
  }
  void a_computer_that_became_slower_says_so() {
    StageSpeed speed;
    for (std::size_t step = 0; step < StageSpeed::most_steps; ++step)
      speed.add(1000, std::chrono::milliseconds(500));
    for (std::size_t step = 0; step <= StageSpeed::most_steps / 2; ++step)
      speed.add(1000, std::chrono::seconds(1));
    QCOMPARE(speed.tokens_per_second().value_or(0), 1000.0);
  }
  void steps_without_time_or_tokens_do_not_count() {
    StageSpeed speed;
    for (int step = 0; step < 20; ++step) {
      speed.add(0, std::chrono::seconds(1));
      speed.add(1000, Duration::zero());
    }
    QVERIFY(!speed.tokens_per_second());
  }
};

NS_TEST(TestStageSpeed)
#include "test_stage_speed.moc"
