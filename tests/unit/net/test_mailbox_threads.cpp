// The edge between threads of a library and the executor, driven by plain threads at full speed: a target of
// the thread sanitizer (tests/long.sh tsan). Tasks write without a lock, as the protocols do.
#include <QtTest>
#include <array>
#include <atomic>
#include <functional>
#include <future>
#include <memory>
#include <thread>
#include <vector>

#include "core/base/executor.h"
#include "core/net/mailbox.h"
#include "tests/support/test_main.h"

using namespace neuroshard;
using net::Mailbox;

namespace {

constexpr int producers = 8;
constexpr int tasks_each = 2'000;
constexpr int patience_ms = 50'000;

// State of the executor: no lock, no atomic.
struct Owned {
  std::array<int, producers> next{};
  int ran = 0;
  bool in_order = true;

  void take(int producer, int number) {
    in_order = in_order && next[static_cast<std::size_t>(producer)] == number;
    next[static_cast<std::size_t>(producer)] = number + 1;
    ++ran;
  }
};

// Starts a thread for each producer; they begin together and end before join() returns.
class Producers {
 public:
  template <typename Body>
  explicit Producers(Body body) {
    for (int producer = 0; producer < producers; ++producer) {
      threads_.emplace_back([this, body, producer] {
        while (!begin_) std::this_thread::yield();
        body(producer);
      });
    }
    begin_ = true;
  }
  ~Producers() { join(); }
  void join() {
    for (std::thread& thread : threads_)
      if (thread.joinable()) thread.join();
  }

 private:
  std::atomic<bool> begin_ = false;
  std::vector<std::thread> threads_;
};

// The number that the executor's own state has, read on its thread.
int read_on(Executor& executor, const std::function<int()>& value) {
  const auto answer = std::make_shared<std::promise<int>>();
  while (!executor.post([answer, value] { answer->set_value(value()); })) std::this_thread::yield();
  return answer->get_future().get();
}

}  // namespace

class TestMailboxThreads : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void every_task_runs_once_and_in_order_data();
  void every_task_runs_once_and_in_order();
  void nothing_runs_after_close();
  void late_messages_outlive_the_executor();
};

void TestMailboxThreads::every_task_runs_once_and_in_order_data() {
  QTest::addColumn<int>("capacity");
  QTest::newRow("room for all") << producers * tasks_each + 64;
  QTest::newRow("a full queue") << 4;
}

void TestMailboxThreads::every_task_runs_once_and_in_order() {
  QFETCH(int, capacity);
  Owned owned;
  const auto executor = make_thread_executor("mailbox", static_cast<std::size_t>(capacity));
  const auto mailbox = std::make_shared<Mailbox>(*executor);
  Producers threads([&](int producer) {
    for (int number = 0; number < tasks_each; ++number) {
      mailbox->put([&owned, producer, number] { owned.take(producer, number); });
      // Others use the executor, too, and fill its queue.
      static_cast<void>(executor->post([] {}));
    }
  });
  threads.join();
  QTRY_VERIFY_WITH_TIMEOUT(
      (mailbox->retry(), read_on(*executor, [&] { return owned.ran; }) == producers * tasks_each),
      patience_ms);
  QVERIFY(read_on(*executor, [&] { return owned.in_order ? 1 : 0; }) == 1);
}

void TestMailboxThreads::nothing_runs_after_close() {
  struct State {
    Owned owned;
    bool closed = false;
    int late = 0;
  } state;
  const auto executor = make_thread_executor("mailbox", 64);
  const auto mailbox = std::make_shared<Mailbox>(*executor);
  {
    const Producers threads([&](int producer) {
      for (int number = 0; number < tasks_each; ++number) {
        mailbox->put([&state, &mailbox, producer, number] {
          if (state.closed) ++state.late;
          state.owned.take(producer, number);
          if (state.owned.ran != producers * tasks_each / 4) return;
          mailbox->close();
          state.closed = true;
        });
        mailbox->retry();
      }
    });
  }
  QTRY_VERIFY_WITH_TIMEOUT((mailbox->retry(), read_on(*executor, [&] { return state.closed ? 1 : 0; }) == 1),
                           patience_ms);
  QCOMPARE(read_on(*executor, [&] { return state.late; }), 0);
  QCOMPARE(read_on(*executor, [&] { return state.owned.ran; }), producers * tasks_each / 4);
}

void TestMailboxThreads::late_messages_outlive_the_executor() {
  std::atomic<int> ran = 0;
  for (int turn = 0; turn < 20; ++turn) {
    auto executor = make_thread_executor("mailbox", 16);
    const auto mailbox = std::make_shared<Mailbox>(*executor);
    Producers threads([mailbox, &ran](int) {
      for (int number = 0; number < 200; ++number) mailbox->put([&ran] { ++ran; });
    });
    QCOMPARE(read_on(*executor, [mailbox] { return mailbox->close(), 1; }), 1);
    executor.reset();
    threads.join();
  }
  QVERIFY(ran <= 20 * producers * 200);
}

NS_TEST(TestMailboxThreads)
#include "test_mailbox_threads.moc"
