// Streams of sessions that a node opens: as fast as its peers allow, and never faster.
#include <QtTest>

#include "core/base/rng.h"
#include "core/pipeline/opening_pace.h"
#include "core/pipeline/peer_lines.h"
#include "core/sim/world.h"
#include "tests/support/busy_executor.h"
#include "tests/support/keys.h"
#include "tests/support/test_main.h"

using namespace neuroshard;
using namespace neuroshard::pipeline;

namespace {

// Connects to nobody.
struct NoTransport final : net::PeerTransport {
  void connect(const net::Dial&, Duration, Connected) override {}
  void set_hello(net::Hello) override {}
  const net::Hello& hello() const override { return own; }
  net::Hello own;
};

}  // namespace

class TestOpeningPace : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void a_few_open_at_once() {
    OpeningPace pace;
    MonotonicTime now{};
    for (int i = 0; i < 40; ++i) QCOMPARE(pace.wait(net::NodeId{1}, now), Duration::zero());
    QVERIFY(pace.wait(net::NodeId{1}, now) > Duration::zero());
    QCOMPARE(pace.wait(net::NodeId{2}, now), Duration::zero());
  }

  // A user writes hundreds of short texts, in bursts and pauses.
  void the_peer_refuses_none() {
    Rng rng(7);
    OpeningPace pace;
    net::RequestLimiter limiter(stream_limits, false, 1);
    const net::Caller self{net::NodeId{9}, {}};
    MonotonicTime now{};
    std::multiset<MonotonicTime> arrivals;
    for (int i = 0; i < 2000; ++i) {
      if (rng.below(20) == 0) now += std::chrono::milliseconds(rng.below(20'000));
      arrivals.insert(now + pace.wait(net::NodeId{1}, now));
    }
    for (const MonotonicTime at : arrivals) QVERIFY(limiter.admit(self, at, 0, net::PeerRank::Known));
    // And they are not much later than the peer allows.
    const double seconds = to_seconds(*arrivals.rbegin() - MonotonicTime{});
    QVERIFY2(seconds < 1.3 * std::max(to_seconds(now - MonotonicTime{}), 2000 / stream_limits.per_second),
             qPrintable(QString::number(seconds)));
  }

  void a_stream_that_is_not_opened_gives_its_turn_back() {
    OpeningPace pace;
    MonotonicTime now{};
    for (int i = 0; i < 40; ++i) (void)pace.wait(net::NodeId{1}, now);
    const Duration first = pace.wait(net::NodeId{1}, now);
    for (int i = 0; i < 100; ++i) {
      pace.give_back(net::NodeId{1});
      QCOMPARE(pace.wait(net::NodeId{1}, now), first);
    }
    pace.give_back(net::NodeId{2});  // that was never counted
  }

  // A session whose driver names two nodes in turn keeps no other session waiting. Here no node has an address, so an attempt
  // fails as soon as its turn has come.
  void attempts_that_are_given_up_keep_nobody_waiting() {
    sim::World world;
    sim::HostExecutor executor(world);
    NoTransport transport;
    net::PeerPool pool(transport, executor, world.clock());
    PeerLines lines(pool, executor, world.clock(), net::NodeId{99},
                    [](const net::NodeId&) { return std::optional<net::Contact>(); });
    ExchangeLog exchanges;
    const Surroundings around{lines, executor, world.clock(), exchanges, net::NodeId{99}, {}, {}};
    NextHop hostile(around, {[](const auto&, const auto&) {}, [](const Lost&) {}});
    Route route;
    route.hops.resize(1);
    for (int i = 0; i < 1000; ++i) {
      route.hops[0].node = net::NodeId{static_cast<std::uint8_t>(1 + i % 2)};
      hostile.follow(route, 0);
    }
    std::string lost;
    NextHop honest(around, {[](const auto&, const auto&) {}, [&](const Lost& one) { lost = one.what; }});
    route.hops[0].node = net::NodeId{1};
    honest.follow(route, 0);
    QVERIFY(world.run_until([&] { return !lost.empty(); }, world.now() + std::chrono::seconds(2)));
    QCOMPARE(lost, std::string("no address of that node is known"));
  }

  void a_full_executor_loses_no_answer() {
    const SystemClock clock;
    testing::BusyExecutor executor;
    NoTransport transport;
    net::PeerPool pool(transport, executor, clock);
    PeerLines lines(pool, executor, clock, net::NodeId{99},
                    [](const net::NodeId&) { return std::optional<net::Contact>(); });
    int answers = 0;
    executor.refused = 1;
    for (const net::NodeId& peer : {net::NodeId{1}, net::NodeId{99}})
      lines.open(peer, [&](const Expected<std::shared_ptr<net::PeerStream>>&) { ++answers; });
    executor.manual.run();
    QCOMPARE(answers, 2);
  }

  void it_forgets_peers_that_rest() {
    OpeningPace pace;
    MonotonicTime now{};
    for (std::size_t i = 0; i < OpeningPace::most_peers; ++i) {
      net::NodeId peer{};
      peer[0] = static_cast<std::uint8_t>(i);
      peer[1] = static_cast<std::uint8_t>(i >> 8);
      (void)pace.wait(peer, now);
    }
    QCOMPARE(pace.remembered(), OpeningPace::most_peers);
    now += std::chrono::seconds(30);
    (void)pace.wait(net::NodeId{255, 255, 255}, now);
    QCOMPARE(pace.remembered(), std::size_t{1});
  }
};

NS_TEST(TestOpeningPace)
#include "test_opening_pace.moc"
