// The simulated world itself: order of events, executors that die, delay, loss, partitions, handshakes, and
// that a seed replays a run.
#include <QtTest>

#include <algorithm>

#include "core/base/rng.h"
#include "core/crypto/keys.h"
#include "core/sim/network.h"
#include "tests/support/test_main.h"

using namespace neuroshard;
using namespace neuroshard::sim;

namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

net::NodeId id(std::uint8_t mark) {
  net::NodeId value;
  value.fill(mark);
  return value;
}

platform::Endpoint endpoint(std::uint8_t last) {
  return {platform::IpAddress::v4(40, 0, 0, last), 9000};
}

Handler echo() {
  return [](const net::Caller&, net::Method, ByteSpan request, const net::Respond& respond) {
    respond(Bytes(request.begin(), request.end()));
  };
}

struct Pair {
  explicit Pair(NetworkOptions options = {}, std::uint64_t seed = 1) : network(world, options, seed) {
    a = network.add(id(1), endpoint(1), Nat::None, nullptr);
    b = network.add(id(2), endpoint(2), Nat::None, echo());
  }
  // Seconds until the answer, or −1 for an error.
  double call(Duration deadline = seconds(5)) {
    double took = -2;
    const MonotonicTime begin = world.now();
    network.caller(a).call(
        {id(2), endpoint(2)}, net::Method::DhtPing, Bytes{1, 2, 3}, deadline,
        [&, begin](Expected<Bytes> answer) { took = answer.ok() ? to_seconds(world.now() - begin) : -1; });
    world.run_for(deadline + seconds(1));
    return took;
  }
  World world;
  Network network;
  Host a = 0, b = 0;
};

}  // namespace

class TestSimWorld : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void events_run_in_order_of_time_then_of_making();
  void any_times_run_in_order();
  void what_is_made_before_the_next_event_runs_before_it();
  void a_stopped_host_runs_nothing_more();
  void a_cancelled_timer_does_not_fire();
  void the_first_call_pays_for_the_handshake();
  void loss_is_as_asked_for();
  void who_is_away_or_elsewhere_does_not_answer();
  void an_answer_to_an_earlier_life_is_dropped();
  void links_follow_from_the_nats();
  void a_seed_replays_a_run();
};

void TestSimWorld::events_run_in_order_of_time_then_of_making() {
  World world;
  std::vector<int> order;
  world.after(seconds(2), [&] { order.push_back(3); });
  world.after(seconds(1), [&] {
    order.push_back(1);
    world.after(seconds(1), [&] { order.push_back(4); });
  });
  world.after(seconds(1), [&] { order.push_back(2); });
  world.run_for(milliseconds(1500));
  QCOMPARE(order, (std::vector<int>{1, 2}));
  world.run_for(seconds(1));
  QCOMPARE(order, (std::vector<int>{1, 2, 3, 4}));
  QVERIFY(world.now() == MonotonicTime(milliseconds(2500)));
}

void TestSimWorld::any_times_run_in_order() {
  World world;
  Rng rng(7);
  std::vector<std::pair<std::int64_t, int>> ran;  // when, and which of all that were made
  int made = 0;
  const auto make = [&](auto&& self) -> void {
    // Near, far, and many at one instant.
    const std::uint64_t spans[] = {1, 8, 1000, 1'000'000'007, 90'000'000'000};
    const Duration delay(static_cast<std::int64_t>(rng.below(spans[rng.below(5)])));
    world.after(delay, [&, number = made++] {
      ran.emplace_back(world.now().time_since_epoch().count(), number);
      if (made < 20'000) self(self), self(self);
    });
  };
  for (int i = 0; i < 100; ++i) make(make);
  world.run_for(std::chrono::hours(24));
  QCOMPARE(ran.size(), static_cast<std::size_t>(made));
  QVERIFY(made >= 20'000);
  QVERIFY(std::is_sorted(ran.begin(), ran.end()));
}

// A clock that stands before the next event may get one before that.
void TestSimWorld::what_is_made_before_the_next_event_runs_before_it() {
  World world;
  std::vector<int> order;
  world.after(seconds(100), [&] { order.push_back(3); });
  world.run_for(seconds(50));
  QVERIFY(order.empty());
  world.after(seconds(20), [&] { order.push_back(2); });
  world.after(seconds(10), [&] { order.push_back(1); });
  world.run_for(seconds(15));
  QCOMPARE(order, (std::vector<int>{1}));
  world.run_for(seconds(100));
  QCOMPARE(order, (std::vector<int>{1, 2, 3}));
}

void TestSimWorld::a_stopped_host_runs_nothing_more() {
  World world;
  HostExecutor executor(world);
  int ran = 0;
  QVERIFY(executor.post([&] { ++ran; }));
  const auto timer = executor.post_after(seconds(1), [&] { ++ran; });
  world.run_for(milliseconds(1));
  executor.stop();
  QVERIFY(!executor.post([&] { ++ran; }));
  world.run_for(seconds(5));
  QCOMPARE(ran, 1);
}

void TestSimWorld::a_cancelled_timer_does_not_fire() {
  World world;
  HostExecutor executor(world);
  int ran = 0;
  auto timer = executor.post_after(seconds(1), [&] { ++ran; });
  timer.reset();
  world.run_for(seconds(2));
  QCOMPARE(ran, 0);
}

void TestSimWorld::the_first_call_pays_for_the_handshake() {
  Pair pair;
  const double first = pair.call(), second = pair.call();
  QVERIFY2(second > 0.007 && second < 0.25, qPrintable(QString("%1 %2").arg(first).arg(second)));
  QVERIFY(std::abs(first / second - 3) < 1e-6);  // two round trips of handshake, then the call's own
  pair.world.run_for(std::chrono::minutes(2));
  QVERIFY(std::abs(pair.call() / second - 3) < 1e-6);  // the connection was idle for too long
}

void TestSimWorld::loss_is_as_asked_for() {
  NetworkOptions options;
  options.loss = 0.2;
  Pair pair(options);
  int answered = 0;
  for (int i = 0; i < 2000; ++i) answered += pair.call(seconds(1)) >= 0;
  const double share = answered / 2000.0;  // both directions must get through: 0.64
  QVERIFY2(share > 0.60 && share < 0.68, qPrintable(QString::number(share)));
}

void TestSimWorld::who_is_away_or_elsewhere_does_not_answer() {
  Pair pair;
  pair.network.set_online(pair.b, false);
  QCOMPARE(pair.call(), -1.0);
  pair.network.set_online(pair.b, true);
  QVERIFY(pair.call() > 0);
  pair.network.set_part(pair.b, 1);
  QCOMPARE(pair.call(), -1.0);
  pair.network.set_part(pair.a, 1);
  QVERIFY(pair.call() > 0);
}

void TestSimWorld::an_answer_to_an_earlier_life_is_dropped() {
  Pair pair;
  int outcomes = 0;
  pair.network.caller(pair.a).call({id(2), endpoint(2)}, net::Method::DhtPing, {}, seconds(5),
                                   [&](Expected<Bytes>) { ++outcomes; });
  pair.network.set_online(pair.a, false);
  pair.network.set_online(pair.a, true);
  pair.world.run_for(seconds(10));
  QCOMPARE(outcomes, 0);
}

void TestSimWorld::links_follow_from_the_nats() {
  QCOMPARE(link_between(Nat::None, Nat::Symmetric), Link::Direct);
  QCOMPARE(link_between(Nat::Cone, Nat::Cone), Link::Punched);
  QCOMPARE(link_between(Nat::Cone, Nat::Symmetric), Link::Relayed);
  QCOMPARE(link_between(Nat::Symmetric, Nat::Symmetric), Link::Relayed);
}

void TestSimWorld::a_seed_replays_a_run() {
  NetworkOptions options;
  options.loss = 0.3;
  const auto run = [&](std::uint64_t seed) {
    Pair pair(options, seed);
    std::vector<double> took;
    for (int i = 0; i < 100; ++i) took.push_back(pair.call(seconds(1)));
    return took;
  };
  QVERIFY(run(5) == run(5));
  QVERIFY(run(5) != run(6));
}

NS_TEST(TestSimWorld)
#include "test_world.moc"
