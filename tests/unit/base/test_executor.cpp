// The thread executor: order, bounds, timers, destruction.
#include <QtTest>
#include <atomic>
#include <future>
#include <memory>
#include <vector>

#include "core/base/executor.h"

using namespace neuroshard;
using namespace std::chrono_literals;

class TestExecutor : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void tasks_run_in_posting_order_on_its_thread();
  void a_full_queue_refuses();
  void timers_fire_once_in_order_of_time();
  void a_destroyed_handle_cancels();
  void destruction_runs_what_is_queued_and_drops_timers();
  void a_timer_may_own_another();
  void a_handle_may_outlive_the_executor();
};

namespace {

constexpr auto long_enough = 10s;  // a bound for a failing test, never waited for

// Holds the executor's thread until released.
class Gate {
 public:
  explicit Gate(Executor& executor) {
    auto entered = std::make_shared<std::promise<void>>();
    auto waiting = entered->get_future();
    const bool posted = executor.post([entered, gate = open_.get_future().share()] {
      entered->set_value();
      gate.wait();
    });
    held_ = posted && waiting.wait_for(long_enough) == std::future_status::ready;
  }
  bool held() const { return held_; }
  void open() { open_.set_value(); }

 private:
  std::promise<void> open_;
  bool held_ = false;
};

}  // namespace

void TestExecutor::tasks_run_in_posting_order_on_its_thread() {
  std::vector<int> order;
  std::atomic<bool> elsewhere{false};
  {
    const auto executor = make_thread_executor("test", 1000);
    QVERIFY(!executor->on_thread());
    for (int i = 0; i < 500; ++i) {
      QVERIFY(executor->post([&, i] {
        if (!executor->on_thread()) elsewhere = true;
        order.push_back(i);
      }));
    }
    std::promise<void> done;
    QVERIFY(executor->post([&] { done.set_value(); }));
    QCOMPARE(done.get_future().wait_for(long_enough), std::future_status::ready);
  }
  QVERIFY(!elsewhere);
  QCOMPARE(order.size(), std::size_t{500});
  QVERIFY(std::is_sorted(order.begin(), order.end()));
}

void TestExecutor::a_full_queue_refuses() {
  std::atomic<int> ran{0};
  {
    const auto executor = make_thread_executor("test", 3);
    Gate gate(*executor);
    QVERIFY(gate.held());
    for (int i = 0; i < 3; ++i) QVERIFY(executor->post([&] { ++ran; }));
    QVERIFY(!executor->post([&] { ran += 100; }));
    gate.open();
  }
  QCOMPARE(ran.load(), 3);
}

void TestExecutor::timers_fire_once_in_order_of_time() {
  std::vector<int> order;
  std::promise<void> done;
  const auto executor = make_thread_executor("test", 10);
  Gate gate(*executor);
  QVERIFY(gate.held());
  std::vector<std::unique_ptr<TimerHandle>> timers;
  timers.push_back(executor->post_after(3ms, [&] {
    order.push_back(3);
    done.set_value();
  }));
  timers.push_back(executor->post_after(1ms, [&] { order.push_back(1); }));
  timers.push_back(executor->post_after(2ms, [&] { order.push_back(2); }));
  gate.open();
  QCOMPARE(done.get_future().wait_for(long_enough), std::future_status::ready);
  QCOMPARE(order, (std::vector<int>{1, 2, 3}));
}

void TestExecutor::a_destroyed_handle_cancels() {
  std::atomic<bool> fired{false};
  const auto executor = make_thread_executor("test", 10);
  Gate gate(*executor);
  QVERIFY(gate.held());
  auto cancelled = executor->post_after(0ms, [&] { fired = true; });
  cancelled.reset();
  std::promise<void> done;
  const auto later = executor->post_after(1ms, [&] { done.set_value(); });
  gate.open();
  QCOMPARE(done.get_future().wait_for(long_enough), std::future_status::ready);
  QVERIFY(!fired);
}

void TestExecutor::destruction_runs_what_is_queued_and_drops_timers() {
  std::atomic<int> ran{0};
  std::atomic<bool> fired{false};
  auto guard = std::make_shared<int>(0);
  std::unique_ptr<TimerHandle> timer;
  {
    const auto executor = make_thread_executor("test", 10);
    Gate gate(*executor);
    QVERIFY(gate.held());
    for (int i = 0; i < 5; ++i) QVERIFY(executor->post([&] { ++ran; }));
    timer = executor->post_after(1h, [&fired, guard] { fired = true; });
    gate.open();
  }
  QCOMPARE(ran.load(), 5);
  QVERIFY(!fired);
  QCOMPARE(guard.use_count(), 1L);  // what the dropped timer held is released
}

void TestExecutor::a_timer_may_own_another() {
  // A task that keeps a handle is destroyed with it, on cancellation and on destruction, without a deadlock.
  auto executor = make_thread_executor("test", 10);
  auto chain = [&] {
    auto inner = std::shared_ptr<TimerHandle>(executor->post_after(1h, [] {}));
    return executor->post_after(1h, [inner] {});
  };
  std::unique_ptr<TimerHandle> cancelled = chain();
  cancelled.reset();
  const std::unique_ptr<TimerHandle> dropped = chain();
  executor.reset();
  QVERIFY(dropped != nullptr);
}

void TestExecutor::a_handle_may_outlive_the_executor() {
  std::unique_ptr<TimerHandle> handle;
  {
    const auto executor = make_thread_executor("a name longer than the kernel keeps", 1);
    handle = executor->post_after(1h, [] {});
  }
  handle.reset();
  QVERIFY(handle == nullptr);
}

QTEST_GUILESS_MAIN(TestExecutor)
#include "test_executor.moc"
