// The compute thread and its jobs: one at a time, in the order of their sources, and no result is lost.
#include <QtTest>

#include <atomic>
#include <thread>

#include "core/engine/detail/job_scheduler.h"
#include "tests/support/pump_executor.h"
#include "tests/support/test_main.h"

using namespace neuroshard;
using engine::detail::JobScheduler;

namespace {

// The core executor of the test, whose queue can be full.
class CoreExecutor final : public Executor {
 public:
  bool post(Task task) override { return !full && inner_.post(std::move(task)); }
  std::unique_ptr<TimerHandle> post_after(Duration delay, Task task) override {
    ++timers;
    return inner_.post_after(delay, std::move(task));
  }
  bool on_thread() const override { return inner_.on_thread(); }
  bool run_until(const std::function<bool()>& condition) { return inner_.run_until(condition); }

  std::atomic<bool> full{false};
  std::atomic<int> timers{0};

 private:
  testing::PumpExecutor inner_;
};

struct Bench {
  ~Bench() {
    jobs.end();
    jobs.stop();
  }
  // A source with so many jobs, each of which notes its name and the thread of its two halves.
  void add(char name, int count) {
    jobs.add_source([this, name, left = count]() mutable {
      if (left == 0) return false;
      --left;
      jobs.start([](const CancelToken&) { return std::this_thread::get_id(); },
                 [this, name](std::thread::id worker) {
                   done += name;
                   elsewhere = elsewhere && worker != std::this_thread::get_id();
                 });
      return true;
    });
  }

  CoreExecutor core;
  std::shared_ptr<net::Mailbox> arrivals = std::make_shared<net::Mailbox>(core);
  JobScheduler jobs{*arrivals};
  std::string done;
  bool elsewhere = true;
};

}  // namespace

class TestJobScheduler : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void the_first_source_with_a_job_is_next() {
    Bench bench;
    bench.add('a', 2);
    bench.add('b', 3);
    bench.jobs.advance();
    bench.jobs.advance();  // one runs: nothing happens
    QVERIFY(bench.core.run_until([&] { return bench.done.size() == 5; }));
    QCOMPARE(bench.done, std::string("aabbb"));
    QVERIFY(bench.elsewhere);
  }

  void a_source_without_a_job_can_hold_up_the_later_ones() {
    Bench bench;
    bool closed = true;
    bench.jobs.add_source([&] { return closed; });
    bench.add('a', 1);
    bench.jobs.advance();
    closed = false;
    bench.jobs.advance();
    QVERIFY(bench.core.run_until([&] { return bench.done == "a"; }));
  }

  void a_result_survives_a_full_queue() {
    Bench bench;
    bench.add('a', 2);
    bench.core.full = true;
    bench.jobs.advance();
    // The worker is refused, and leaves the result to a timer.
    QVERIFY(bench.core.run_until([&] { return bench.core.timers > 1; }));
    QVERIFY(bench.done.empty());
    bench.core.full = false;
    QVERIFY(bench.core.run_until([&] { return bench.done == "aa"; }));
  }

  void an_interrupt_reaches_the_job_that_runs() {
    Bench bench;
    bool wanted = true, interrupted = false;
    bench.jobs.add_source([&] {
      if (!std::exchange(wanted, false)) return false;
      bench.jobs.start(
          [](const CancelToken& interrupt) {
            while (!interrupt.cancelled()) QThread::yieldCurrentThread();
            return true;
          },
          [&](bool result) { interrupted = result; });
      return true;
    });
    bench.jobs.advance();
    bench.jobs.interrupt();
    QVERIFY(bench.core.run_until([&] { return interrupted; }));
  }

  void after_the_end_no_job_starts() {
    Bench bench;
    bench.add('a', 1);
    bench.jobs.end();
    bench.jobs.advance();
    bench.jobs.stop();
    QVERIFY(bench.done.empty());
  }
};

NS_TEST(TestJobScheduler)
#include "test_job_scheduler.moc"
