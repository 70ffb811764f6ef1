// Peers over gRPC with executors that have threads of their own, as programs have: gRPC's threads bring news
// themselves where nothing waits, and the executors' threads otherwise. Each call is answered once, in
// order within a stream, however the two alternate.
#include <QtTest>
#include <atomic>
#include <future>

#include "tests/support/test_main.h"
#include "tests/unit/rpc/measure_nodes.h"

using namespace neuroshard;
using namespace neuroshard::testing;

namespace {

constexpr auto long_enough = std::chrono::seconds(60);  // for a failing test

}  // namespace

class TestThreads : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void every_call_is_answered_once_on_its_executor();
  void what_a_callback_holds_goes_on_its_executor();
  void a_stream_keeps_its_order_while_others_call();
  void an_end_in_the_middle_of_calls();
};

void TestThreads::every_call_is_answered_once_on_its_executor() {
  Nodes nodes;
  constexpr int chains = 8, each = 100;
  std::promise<void> done;
  // The executor's own, no locks: a race would show (and is one to the thread sanitizer).
  int answered = 0, elsewhere = 0, wrong = 0, ended = 0;
  std::function<void(int)> next = [&](int left) {
    if (left == 0) {
      if (++ended == chains) done.set_value();
      return;
    }
    nodes.channel->call(method, Bytes{static_cast<std::uint8_t>(left)}, std::chrono::seconds(30),
                        [&, left](const Expected<Bytes>& answer) {
                          ++answered;
                          if (!nodes.a_executor->on_thread()) ++elsewhere;
                          if (!answer.ok() || *answer != Bytes{static_cast<std::uint8_t>(left)}) ++wrong;
                          next(left - 1);
                        });
  };
  Nodes::run(*nodes.a_executor, [&] {
    for (int chain = 0; chain < chains; ++chain) next(each);
  });
  QCOMPARE(done.get_future().wait_for(long_enough), std::future_status::ready);
  Nodes::run(*nodes.a_executor, [] {});
  QCOMPARE(answered, chains * each);
  QCOMPARE(elsewhere, 0);
  QCOMPARE(wrong, 0);
}

// A callback may hold the last of what only its executor's tasks may touch, a channel for one.
void TestThreads::what_a_callback_holds_goes_on_its_executor() {
  Nodes nodes;
  constexpr int chains = 4, each = 100;
  std::promise<void> done;
  std::atomic<int> elsewhere{0}, gone{0};
  std::function<void(int)> next = [&](int left) {
    const std::shared_ptr<int> held(new int(left), [&](int* value) {
      delete value;
      if (!nodes.a_executor->on_thread()) ++elsewhere;
      if (++gone == chains * each) done.set_value();
    });
    nodes.channel->call(method, Bytes{1}, std::chrono::seconds(30), [&, left, held](const Expected<Bytes>&) {
      if (left > 1) next(left - 1);
    });
  };
  Nodes::run(*nodes.a_executor, [&] {
    for (int chain = 0; chain < chains; ++chain) next(each);
  });
  QCOMPARE(done.get_future().wait_for(long_enough), std::future_status::ready);
  Nodes::run(*nodes.a_executor, [] {});
  QCOMPARE(elsewhere.load(), 0);
}

void TestThreads::a_stream_keeps_its_order_while_others_call() {
  Nodes nodes;
  // Answers a stream's messages with their numbers, and the calls beside it.
  struct Numbers final : net::PeerService {
    void on_call(const net::Caller&, net::Method, Bytes request, net::Respond respond) override {
      respond(std::move(request));
    }
    void on_stream(const net::Caller&, net::Method, std::shared_ptr<net::PeerStream> stream) override {
      take(std::move(stream), 0);
    }
    void take(std::shared_ptr<net::PeerStream> stream, int expected) {
      auto* const raw = stream.get();
      raw->read([this, stream = std::move(stream), expected](Expected<std::optional<ByteChain>> piece) {
        if (!piece.ok()) return;
        if (!*piece) {
          last = expected;
          return stream->finish();
        }
        if ((*piece)->size() < 2 || (*piece)->bytes()[0] != expected % 256 ||
            (*piece)->bytes()[1] != expected / 256)
          ++wrong;
        bytes += (*piece)->size();
        take(stream, expected + 1);
      });
    }
    std::atomic<int> wrong{0}, last{-1};
    std::atomic<std::size_t> bytes{0};
  } service;
  Nodes::run(*nodes.b_executor, [&] { nodes.b->serve(&service); });
  constexpr int pieces = 300;
  std::size_t sent = 0;
  std::promise<bool> done;
  std::shared_ptr<net::PeerStream> stream;
  std::function<void(int)> next = [&](int piece) {
    if (piece == pieces) {
      stream->finish();
      return stream->read([&](const Expected<std::optional<ByteChain>>& end) {
        done.set_value(end.ok() && !end->has_value());
      });
    }
    Bytes bytes(piece % 3 == 0 ? net::chunk_bytes : 100 + static_cast<std::size_t>(piece));
    bytes[0] = static_cast<std::uint8_t>(piece % 256);
    bytes[1] = static_cast<std::uint8_t>(piece / 256);
    sent += bytes.size();
    stream->write(std::move(bytes), [&, piece](const Expected<void>& written) {
      if (!written.ok()) return done.set_value(false);
      next(piece + 1);
    });
  };
  Nodes::run(*nodes.a_executor, [&] {
    stream = nodes.channel->open(method, net::stream_patience);
    next(0);
  });
  auto ended = done.get_future();
  while (ended.wait_for(std::chrono::seconds(0)) != std::future_status::ready) QVERIFY(nodes.echo());
  QVERIFY(ended.get());
  Nodes::run(*nodes.a_executor, [&] { stream.reset(); });
  QTRY_COMPARE(service.last.load(), pieces);
  QCOMPARE(service.wrong.load(), 0);
  QCOMPARE(service.bytes.load(), sent);
  Nodes::run(*nodes.b_executor, [&] { nodes.b->serve(&nodes.sink); });
}

// Transports go while calls are on their way: each ends once, and nothing is left behind.
void TestThreads::an_end_in_the_middle_of_calls() {
  for (int round = 0; round < 5; ++round) {
    std::atomic<int> ended{0};
    constexpr int calls = 40;
    {
      Nodes nodes;
      Nodes::run(*nodes.a_executor, [&] {
        for (int i = 0; i < calls; ++i)
          nodes.channel->call(method, Bytes(std::size_t{1} << 12), std::chrono::seconds(30),
                              [&](const Expected<Bytes>&) { ++ended; });
      });
      if (round % 2 == 0) Nodes::run(*nodes.b_executor, [&] { nodes.b.reset(); });
      QVERIFY(round % 2 != 0 || QTest::qWaitFor([&] { return ended == calls; }, 60'000));
    }
    QVERIFY(ended <= calls);
  }
}

NS_TEST(TestThreads)
#include "test_threads.moc"
