// Quitting on a busy machine: other programs fill every processor, a checkpoint is being written at its
// leisurely pace, and the user asks to stop. Within the promised time the process is gone, and the newest
// checkpoint is whole and of the last step.
#include <QElapsedTimer>
#include <QTest>
#include <atomic>
#include <thread>
#include <vector>

#include "tests/support/test_main.h"
#include "tests/support/training_run.h"

using namespace neuroshard;        // NOLINT
using namespace neuroshard::test;  // NOLINT

namespace {

constexpr int promised_ms = 15'000;

// Threads that never rest, one for each processor.
class BusyMachine {
 public:
  BusyMachine() {
    for (unsigned i = 0; i < std::max(1u, std::thread::hardware_concurrency()); ++i) {
      threads_.emplace_back([this] {
        while (!stop_) work_.fetch_add(1, std::memory_order_relaxed);
      });
    }
  }
  ~BusyMachine() {
    stop_ = true;
    for (std::thread& thread : threads_) thread.join();
  }

 private:
  std::atomic<bool> stop_{false};
  std::atomic<std::uint64_t> work_{0};
  std::vector<std::thread> threads_;
};

}  // namespace

class TestBusyQuit : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void initTestCase() {
    const QByteArray problem = lab_.prepare();
    QVERIFY2(problem.isEmpty(), problem.constData());
  }
  void a_stop_request_during_a_save();

 private:
  // Some 20 MB a checkpoint: at its pace a second of writing.
  TrainingLab lab_{{{"hidden", "128"}, {"head-dim", "64"}, {"vocab", "300"}, {"experts", "8"}}};
};

void TestBusyQuit::a_stop_request_during_a_save() {
  const QString data = lab_.copy("busy");
  const QString saving = data + "/checkpoints/.saving";
  QStringList arguments = lab_.train("busy", 1'000'000);
  // Rarely enough that no second save hurries the first.
  arguments[arguments.indexOf("--checkpoint-every-steps") + 1] = "30";
  ProcessResult stopped;
  qint64 elapsed = 0;
  {
    NodeProcess process(arguments);
    QVERIFY(process.started());
    qint64 step = 0;
    QByteArray loss;
    for (auto line = process.next_line(); line && !read_step(*line, &step, &loss);)
      line = process.next_line();
    const BusyMachine busy;
    while (process.running() && !QDir(saving).exists()) (void)process.next_line(20);
    if (!process.running()) QFAIL(process.finish().text().constData());
    QElapsedTimer clock;
    clock.start();
    process.terminate();
    stopped = process.finish(promised_ms);
    elapsed = clock.elapsed();
  }
  QVERIFY2(!stopped.timed_out && !stopped.crashed, stopped.text().constData());
  qInfo("MEASURED stopped %lld ms after the request, with a save in flight and %u threads of others",
        static_cast<long long>(elapsed), std::thread::hardware_concurrency());

  QVERIFY(!QDir(saving).exists());
  const ProcessResult verified = run_node({"checkpoint", "verify", "--data-dir", data});
  QVERIFY2(verified.ok(), verified.text().constData());
  // Nothing is repeated: what was kept is the last step.
  const LossTexts before = losses_of(stopped.out);
  const ProcessResult next = run_node(lab_.train("busy", 1));
  QVERIFY2(next.ok(), next.text().constData());
  QCOMPARE(losses_of(next.out).firstKey(), before.lastKey() + 1);
}

NS_TEST(TestBusyQuit)
#include "test_busy_quit.moc"
