// kill -9 at random moments: the newest complete checkpoint loads, the run goes on, and every loss that is
// printed equals that of the uninterrupted run, digit for digit. NS_LONG=1: fifty kills instead of four;
// NS_SEED repeats a failed run.
#include <QElapsedTimer>
#include <QTest>

#include "tests/support/test_main.h"
#include "tests/support/training_run.h"

using namespace neuroshard;        // NOLINT
using namespace neuroshard::test;  // NOLINT

class TestKillResume : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void initTestCase() {
    const QByteArray problem = lab_.prepare();
    QVERIFY2(problem.isEmpty(), problem.constData());
  }
  void killed_runs_repeat_the_uninterrupted_one();
  void stop_request_ends_within_a_step_and_loses_nothing();

 private:
  TrainingLab lab_;
};

void TestKillResume::killed_runs_repeat_the_uninterrupted_one() {
  const bool full = qEnvironmentVariableIsSet("NS_LONG");
  const int kills = full ? 50 : 4;
  const int steps = full ? 400 : 40;
  const std::uint64_t seed = qEnvironmentVariableIsSet("NS_SEED")
                                 ? qEnvironmentVariable("NS_SEED").toULongLong()
                                 : static_cast<std::uint64_t>(QDateTime::currentMSecsSinceEpoch());
  qInfo("seed %llu (NS_SEED repeats it)", static_cast<unsigned long long>(seed));
  Rng rng(seed);

  lab_.copy("straight");
  const ProcessResult straight = run_node(lab_.train("straight", steps), 600'000);
  QVERIFY2(straight.ok(), straight.text().constData());
  const LossTexts expected = losses_of(straight.out);
  QCOMPARE(expected.size(), steps);
  const qint64 last = expected.lastKey();

  lab_.copy("killed");
  QElapsedTimer clock;
  int compared = 0, before_first_step = 0;
  qint64 reached = expected.firstKey() - 1, repeated = 0;
  const auto check = [&](qint64 step, const QByteArray& loss) {
    ++compared;
    return !expected.contains(step) || expected.value(step) == loss;
  };
  for (int kill = 0; kill < kills; ++kill) {
    NodeProcess process(lab_.train("killed", steps));
    QVERIFY(process.started());
    // Half of the kills come after some steps, half at any moment, start included; all with a random delay on
    // top.
    const qint64 wanted = rng.below(2) == 0 ? 0 : 1 + static_cast<qint64>(rng.below(8));
    qint64 seen = 0, step = 0;
    QByteArray loss;
    while (seen < wanted) {
      const auto line = process.next_line();
      if (!line) break;
      if (!read_step(*line, &step, &loss)) continue;
      QVERIFY2(check(step, loss),
               ("step " + QByteArray::number(step) + " after a kill: " + loss).constData());
      if (seen == 0 && step <= reached) repeated += reached - step + 1;
      reached = qMax(reached, step);
      ++seen;
    }
    const int delay_ms = static_cast<int>(rng.below(wanted == 0 ? 2500 : 60));
    clock.start();
    while (clock.elapsed() < delay_ms && process.running()) {
      const auto line = process.next_line(static_cast<int>(delay_ms - clock.elapsed()));
      if (!line || !read_step(*line, &step, &loss)) continue;
      QVERIFY2(check(step, loss),
               ("step " + QByteArray::number(step) + " after a kill: " + loss).constData());
      reached = qMax(reached, step);
      ++seen;
    }
    process.kill_now();
    if (seen == 0) ++before_first_step;
    if (reached >= last - 10) {  // start over rather than kill a finished run
      std::filesystem::remove_all(lab_.path("killed").toStdString());
      lab_.copy("killed");
      reached = expected.firstKey() - 1;
    }
  }

  // Left alone now, it must reach the end with the same losses.
  NodeProcess process(lab_.train("killed", steps));
  qint64 step = 0;
  QByteArray loss;
  while (step < last) {
    const auto line = process.next_line();
    if (!line) QFAIL(process.finish(1000).text().constData());
    if (!read_step(*line, &step, &loss)) continue;
    QVERIFY2(check(step, loss), ("step " + QByteArray::number(step) + " at the end: " + loss).constData());
  }
  process.terminate();
  (void)process.finish();
  const ProcessResult verified = run_node({"checkpoint", "verify", "--data-dir", lab_.path("killed")});
  QVERIFY2(verified.ok(), verified.text().constData());
  qInfo(
      "MEASURED kill -9: %d kills (%d before the first step), %d losses compared, all equal; %lld steps "
      "repeated; seed %llu",
      kills, before_first_step, compared, static_cast<long long>(repeated),
      static_cast<unsigned long long>(seed));
}

void TestKillResume::stop_request_ends_within_a_step_and_loses_nothing() {
  lab_.copy("stopped");
  NodeProcess process(lab_.train("stopped", 1'000'000));
  qint64 step = 0;
  QByteArray loss;
  while (step < 5) {
    const auto line = process.next_line();
    if (!line) QFAIL(process.finish(1000).text().constData());
    read_step(*line, &step, &loss);
  }
  process.terminate();
  const ProcessResult stopped = process.finish(20'000);
  QVERIFY2(!stopped.timed_out && !stopped.crashed, stopped.text().constData());
  const LossTexts before = losses_of(stopped.out);

  // The next run goes on with the very next step: nothing is repeated after a clean stop.
  const ProcessResult next = run_node(lab_.train("stopped", 1));
  QVERIFY2(next.ok(), next.text().constData());
  const LossTexts after = losses_of(next.out);
  QCOMPARE(after.size(), 1);
  QCOMPARE(after.firstKey(), before.lastKey() + 1);
}

NS_TEST(TestKillResume)
#include "test_kill_resume.moc"
