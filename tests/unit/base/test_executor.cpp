// The thread executor: order, bounds, timers, destruction.
#include <QtTest>
#include <atomic>
#include <cstdlib>
#include <future>
#include <memory>
#include <thread>
#include <vector>

#include "core/base/executor.h"
#include "core/base/turn.h"
#include "tests/support/test_main.h"

using namespace neuroshard;
using namespace std::chrono_literals;

class TestExecutor : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void tasks_run_in_posting_order_on_its_thread();
  void a_full_queue_refuses();
  void timers_fire_once_in_order_of_time();
  void a_destroyed_handle_cancels();
  void a_due_timer_is_cancelled_by_a_task_before_it();
  void destruction_runs_what_is_queued_and_drops_timers();
  void a_timer_may_own_another();
  void a_handle_may_outlive_the_executor();
  void a_turn_is_taken_where_nothing_waits();
  void turns_and_tasks_never_meet();
  void a_turn_may_set_timers_and_post();
  void no_turn_after_the_end();
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

// An object destroyed in a task cancels its timers, also those that were due already.
void TestExecutor::a_due_timer_is_cancelled_by_a_task_before_it() {
  const auto executor = make_thread_executor("test", 16);
  std::promise<void> over;
  std::atomic<int> after_the_end{0};
  bool gone = false;  // the executor's
  std::unique_ptr<TimerHandle> first, second;
  QVERIFY(executor->post([&] {
    first = executor->post_after(1ms, [&] { after_the_end += gone ? 1 : 0; });
    second = executor->post_after(1ms, [&] { after_the_end += gone ? 1 : 0; });
    const auto both_due = std::chrono::steady_clock::now() + 2ms;
    while (std::chrono::steady_clock::now() < both_due) std::this_thread::yield();
  }));
  QVERIFY(executor->post([&] {
    gone = true;
    first.reset();
    second.reset();
  }));
  QVERIFY(executor->post([&] { static_cast<void>(executor->post([&] { over.set_value(); })); }));
  QCOMPARE(over.get_future().wait_for(long_enough), std::future_status::ready);
  QCOMPARE(after_the_end.load(), 0);
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

namespace {

std::shared_ptr<Turn> turn_of(Executor& executor) {
  auto* const lender = dynamic_cast<TurnLender*>(&executor);
  return lender == nullptr ? nullptr : lender->turn();
}

// Until everything posted before has run.
bool drained(Executor& executor) {
  std::promise<void> done;
  return executor.post([&] { done.set_value(); }) &&
         done.get_future().wait_for(long_enough) == std::future_status::ready;
}

}  // namespace

void TestExecutor::a_turn_is_taken_where_nothing_waits() {
  const auto executor = make_thread_executor("test", 10);
  const auto turn = turn_of(*executor);
  QVERIFY(turn);
  bool here = false, twice = true;
  const auto self = std::this_thread::get_id();
  QVERIFY(turn->take([&] {
    here = std::this_thread::get_id() == self && executor->on_thread();
    twice = turn->take([] {});
  }));
  QVERIFY(here);
  QVERIFY(!twice);
  QVERIFY(!executor->on_thread());
  Gate gate(*executor);
  QVERIFY(gate.held());
  QVERIFY(!turn->take([] { QFAIL("beside a task that runs"); }));
  gate.open();
  QVERIFY(drained(*executor));
}

void TestExecutor::turns_and_tasks_never_meet() {
  constexpr int each = 20'000;
  const auto executor = make_thread_executor("test", std::size_t{4} * each);
  const auto turn = turn_of(*executor);
  int inside = 0, sum = 0, met = 0;  // of no lock: the executor is one
  const auto work = [&] {
    if (++inside != 1) ++met;
    ++sum;
    --inside;
  };
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < each; ++i)
        if (!turn->take(work) && !executor->post(work)) std::abort();
    });
  }
  for (std::thread& thread : threads) thread.join();
  QVERIFY(drained(*executor));
  QCOMPARE(sum, 3 * each);
  QCOMPARE(met, 0);
}

void TestExecutor::a_turn_may_set_timers_and_post() {
  const auto executor = make_thread_executor("test", 10);
  const auto turn = turn_of(*executor);
  std::promise<void> posted, fired;
  std::unique_ptr<TimerHandle> far = executor->post_after(1h, [] {}), near;
  QVERIFY(drained(*executor));  // and waits for the far one, as soon as the last task has ended
  bool taken = false;
  QTRY_VERIFY(taken || (taken = turn->take([&] {
                near = executor->post_after(1ms, [&] { fired.set_value(); });
                if (!executor->post([&] { posted.set_value(); })) std::abort();
              })));
  QCOMPARE(posted.get_future().wait_for(long_enough), std::future_status::ready);
  QCOMPARE(fired.get_future().wait_for(long_enough), std::future_status::ready);
}

void TestExecutor::no_turn_after_the_end() {
  auto executor = make_thread_executor("test", 10);
  const auto turn = turn_of(*executor);
  std::promise<void> entered, leave;
  std::atomic<bool> over{false};
  std::thread guest([&] {
    if (!turn->take([&] {
          entered.set_value();
          leave.get_future().wait();
          over = true;
        }))
      std::abort();
  });
  entered.get_future().wait();
  std::thread letting_go([&] { leave.set_value(); });
  executor.reset();  // waits for the turn that is under way
  QVERIFY(over);
  letting_go.join();
  guest.join();
  QVERIFY(!turn->take([] { QFAIL("the executor is gone"); }));
}

NS_TEST(TestExecutor)
#include "test_executor.moc"
