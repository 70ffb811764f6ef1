// The order of a stage's work: full batches, gradients before forward passes before the weights' gradients.
#include <QtTest>

#include "core/pipeline/stage_schedule.h"
#include "tests/support/test_main.h"

using namespace neuroshard::pipeline;

namespace {

constexpr std::uint64_t tokens = 10;

Job job(JobKind kind, std::uint64_t id) {
  return {kind, id};
}

// Does what the schedule says, and says that it is done.
std::optional<Job> work(StageSchedule& schedule) {
  const auto next = schedule.next();
  if (next) schedule.done(*next);
  return next;
}

}  // namespace

class TestStageSchedule : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void a_batch_is_full_and_no_more() {
    StageSchedule schedule({3 * tokens, 16, 16});
    for (std::uint64_t id = 1; id <= 4; ++id) schedule.arrived(id, tokens, tokens - 1);
    for (std::uint64_t id = 1; id <= 3; ++id) QCOMPARE(*work(schedule), job(JobKind::Forward, id));
    QVERIFY(!schedule.next());  // the fourth meets the next weights
    for (std::uint64_t id = 1; id <= 3; ++id) {
      schedule.gradient_arrived(id);
      QCOMPARE(*work(schedule), job(JobKind::Backward, id));
    }
    for (std::uint64_t id = 1; id <= 3; ++id) QCOMPARE(*work(schedule), job(JobKind::Weights, id));
    QCOMPARE(schedule.counted().targets, 3 * (tokens - 1));
    QCOMPARE(*work(schedule), job(JobKind::Step, 0));
    QCOMPARE(schedule.counted().tokens, std::uint64_t{0});
    QCOMPARE(*work(schedule), job(JobKind::Forward, 4));
  }

  void whom_others_wait_for_comes_first() {
    StageSchedule schedule({100 * tokens, 16, 2});
    schedule.arrived(1, tokens, tokens);
    schedule.arrived(2, tokens, tokens);
    work(schedule);
    schedule.gradient_arrived(1);
    QCOMPARE(*work(schedule), job(JobKind::Backward, 1));
    QCOMPARE(*work(schedule), job(JobKind::Forward, 2));
    QCOMPARE(*schedule.next(), job(JobKind::Weights, 1));  // nothing else to do
    schedule.gradient_arrived(2);
    QCOMPARE(*work(schedule), job(JobKind::Backward, 2));
    schedule.arrived(3, tokens, tokens);
    QCOMPARE(*work(schedule), job(JobKind::Weights, 1));  // two are due: their activations take memory
    QCOMPARE(*work(schedule), job(JobKind::Forward, 3));
  }

  void activations_are_bounded() {
    StageSchedule schedule({100 * tokens, 2, 2});
    for (std::uint64_t id = 1; id <= 3; ++id) schedule.arrived(id, tokens, tokens);
    work(schedule);
    work(schedule);
    QVERIFY(!schedule.next());
    schedule.gradient_arrived(1);
    work(schedule);
    QCOMPARE(*work(schedule), job(JobKind::Weights, 1));
    QCOMPARE(*work(schedule), job(JobKind::Forward, 3));
  }

  void what_is_dropped_leaves_room() {
    StageSchedule schedule({2 * tokens, 16, 16});
    for (std::uint64_t id = 1; id <= 4; ++id) schedule.arrived(id, tokens, tokens);
    work(schedule);
    work(schedule);
    QVERIFY(!schedule.next());
    QVERIFY(schedule.drop(1));  // under way
    QVERIFY(schedule.drop(3));  // waits
    QCOMPARE(*work(schedule), job(JobKind::Forward, 4));
    for (const std::uint64_t id : {2, 4}) {
      schedule.gradient_arrived(id);
      work(schedule);
      QVERIFY(!schedule.drop(id));  // it counts
    }
    work(schedule);
    work(schedule);
    QCOMPARE(*work(schedule), job(JobKind::Step, 0));
  }
};

NS_TEST(TestStageSchedule)
#include "test_stage_schedule.moc"
