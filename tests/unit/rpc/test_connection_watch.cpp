// Which connections end, by their bytes and their calls, on a clock of the test.
#include <QtTest>

#include "core/rpc/detail/connection_watch.h"
#include "tests/support/test_main.h"

using namespace neuroshard;
using namespace neuroshard::rpc;
using namespace neuroshard::rpc::detail;
using net::PeerRank;
using net::Refusal;

namespace {

constexpr std::uint64_t kibi = 1024, mebi = 1024 * kibi;
constexpr Duration second = std::chrono::seconds(1);

struct Door {
  explicit Door(ConnectionLimits limits = {}) : watch(limits, 1) {}

  std::size_t connect(const char* ip) {
    open.push_back({{*platform::parse_ip(ip), static_cast<std::uint16_t>(1000 + open.size())}, now, 0});
    gone.push_back(false);
    return open.size() - 1;
  }
  void receive(std::size_t connection, std::uint64_t bytes) { open[connection].received += bytes; }
  void greet(std::size_t connection, PeerRank rank = PeerRank::Stranger) {
    receive(connection, 3 * kibi);
    QVERIFY(watch.started(open[connection].remote, rank, now));
    watch.greeted(open[connection].remote, rank, now);
  }
  void call(std::size_t connection, std::uint64_t bytes, PeerRank rank = PeerRank::Stranger) {
    receive(connection, bytes + 600);
    QVERIFY(watch.started(open[connection].remote, rank, now));
    watch.answered(open[connection].remote, rank, bytes, now);
  }
  // Ends what the watch says, and returns the reasons.
  std::vector<Refusal> review(bool memory_is_short = false) {
    std::vector<platform::OpenConnection> living;
    for (std::size_t i = 0; i < open.size(); ++i)
      if (!gone[i]) living.push_back(open[i]);
    std::vector<Refusal> reasons;
    for (const auto& [remote, reason] : watch.review(living, now, memory_is_short)) {
      reasons.push_back(reason);
      for (std::size_t i = 0; i < open.size(); ++i)
        if (open[i].remote == remote && !gone[i]) {
          gone[i] = true;
          watch.ended(open[i], now);
        }
    }
    return reasons;
  }

  // A shaped connection whose peer sends without end: the bytes that pass in so long.
  std::size_t connect_shaped(const char* ip) {
    const std::size_t connection = connect(ip);
    watch.shaped(open[connection].remote);
    return connection;
  }
  std::uint64_t flood(std::size_t connection, Duration time) {
    const std::uint64_t before = open[connection].received;
    for (const MonotonicTime end = now + time; now < end;) {
      const auto grant = watch.allow(open[connection].remote, open[connection].received, now);
      open[connection].received += grant.bytes;
      now += std::max(grant.pause, Duration(std::chrono::microseconds(100)));
    }
    return open[connection].received - before;
  }
  // So many bytes wait; whether all of them pass within a second.
  bool passes(std::size_t connection, std::uint64_t bytes) {
    for (const MonotonicTime end = now + second; now < end && bytes != 0;) {
      const auto grant = watch.allow(open[connection].remote, open[connection].received, now);
      const std::uint64_t some = std::min<std::uint64_t>(bytes, grant.bytes);
      open[connection].received += some;
      bytes -= some;
      now += grant.pause;
    }
    return bytes == 0;
  }

  ConnectionWatch watch;
  MonotonicTime now{};
  std::vector<platform::OpenConnection> open;
  std::vector<bool> gone;
};

}  // namespace

class TestConnectionWatch : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void calls_are_served_for_ever();
  void streams_run_for_ever();
  void a_large_request_may_arrive();
  void frames_without_calls_end_the_connection_data();
  void frames_without_calls_end_the_connection();
  void the_neighbours_of_a_flood_stay();
  void who_comes_back_has_no_new_allowance();
  void a_second_greeting_is_not_earned();
  void calls_do_not_pay_for_a_flood();
  void calls_that_are_given_up_count();
  void a_connection_without_calls_ends();
  void strangers_go_first_when_memory_is_short();
  void an_idle_network_is_quiet();
  void a_shaped_flood_waits_data();
  void a_shaped_flood_waits();
  void calls_over_a_shaped_connection_pass();
  void calls_that_begin_hold_a_shaped_connection();
  void the_neighbour_of_a_shaped_flood_is_served();
  void a_held_connection_ends();
  void handshakes_of_a_group_are_limited();
};

void TestConnectionWatch::calls_are_served_for_ever() {
  Door door;
  const std::size_t peer = door.connect("1.2.3.4");
  door.greet(peer);
  for (int i = 0; i < 10'000; ++i) {
    door.call(peer, i % 100 == 0 ? mebi : 200);
    door.now += second / 10;
    QVERIFY(door.review().empty());
  }
}

void TestConnectionWatch::streams_run_for_ever() {
  Door door;
  const std::size_t peer = door.connect("1.2.3.4");
  door.greet(peer);
  for (int i = 0; i < 10'000; ++i) {
    door.receive(peer, 257 * kibi);
    door.watch.streamed(door.open[peer].remote, 256 * kibi, door.now);
    door.now += second / 20;
    QVERIFY(door.review().empty());
  }
}

void TestConnectionWatch::a_large_request_may_arrive() {
  Door door;
  const std::size_t peer = door.connect("1.2.3.4");
  door.greet(peer);
  for (int request = 0; request < 20; ++request) {
    for (int part = 0; part < 16; ++part) {
      door.receive(peer, 256 * kibi);
      door.now += second / 4;
      QVERIFY(door.review().empty());
    }
    door.watch.answered(door.open[peer].remote, PeerRank::Stranger, 4 * mebi, door.now);
  }
}

void TestConnectionWatch::frames_without_calls_end_the_connection_data() {
  QTest::addColumn<bool>("limited");
  QTest::newRow("limited") << true;
  QTest::newRow("control: as much as one likes") << false;
}

void TestConnectionWatch::frames_without_calls_end_the_connection() {
  QFETCH(bool, limited);
  ConnectionLimits limits;
  if (!limited) limits.unearned_burst = 1e15;
  Door door(limits);
  const std::size_t peer = door.connect("1.2.3.4");
  door.greet(peer);
  std::uint64_t read = 0;
  for (int i = 0; i < 40 && !door.gone[peer]; ++i) {
    door.receive(peer, 10 * mebi / 4);
    read += 10 * mebi / 4;
    door.now += second / 4;
    const auto reasons = door.review();
    if (!reasons.empty()) QCOMPARE(reasons, std::vector<Refusal>{Refusal::Unearned});
  }
  QCOMPARE(bool(door.gone[peer]), limited);
  QVERIFY((read <= 15 * mebi) == limited);
}

void TestConnectionWatch::the_neighbours_of_a_flood_stay() {
  Door door;
  const std::size_t neighbour = door.connect("1.2.3.4"), member = door.connect("1.2.3.5"),
                    other = door.connect("5.6.7.8"), flood = door.connect("1.2.3.99");
  door.greet(neighbour);
  door.greet(member, PeerRank::Known);
  door.greet(other);
  door.receive(member, 4 * mebi);  // a request on its way
  door.receive(other, 4 * mebi);
  door.greet(flood);
  door.receive(flood, 50 * mebi);
  door.call(neighbour, 200);
  QCOMPARE(door.review().size(), std::size_t{1});
  QVERIFY(door.gone[flood]);
  for (int i = 0; i < 100; ++i) {
    door.call(neighbour, 200);
    door.now += second;
    QVERIFY(door.review().empty());
  }
}

void TestConnectionWatch::who_comes_back_has_no_new_allowance() {
  Door door;
  std::uint64_t read = 0;
  for (int i = 0; i < 60; ++i) {
    const std::size_t peer = door.connect("2a00:1:2:3::1");
    while (!door.gone[peer]) {
      door.receive(peer, 32 * kibi);
      read += 32 * kibi;
      door.now += second / 8;
      door.review();
    }
  }
  const double allowed = ConnectionLimits().unearned_burst +
                         ConnectionLimits().unearned_per_second * to_seconds(door.now - MonotonicTime{});
  QVERIFY2(static_cast<double>(read) < allowed + 60 * 128 * kibi, qPrintable(QString::number(read / kibi)));
}

void TestConnectionWatch::a_second_greeting_is_not_earned() {
  Door door;
  const std::size_t peer = door.connect("1.2.3.4");
  int greetings = 0;
  for (; greetings < 10'000 && !door.gone[peer]; ++greetings) {
    door.receive(peer, 400);
    static_cast<void>(door.watch.started(door.open[peer].remote, PeerRank::Stranger, door.now));
    door.watch.greeted(door.open[peer].remote, PeerRank::Stranger, door.now);
    if (greetings % 100 == 0) door.review();
  }
  QVERIFY2(greetings < 2500, qPrintable(QString::number(greetings)));
}

void TestConnectionWatch::calls_do_not_pay_for_a_flood() {
  Door door;
  const std::size_t peer = door.connect("1.2.3.4");
  door.greet(peer);
  for (int i = 0; i < 600; ++i) {
    door.call(peer, 100);
    door.now += second / 10;
    QVERIFY(door.review().empty());
  }
  door.receive(peer, 11 * mebi);  // more than what 600 calls of 2 KiB each would pay, with the burst
  door.review();
  QVERIFY(door.gone[peer]);
}

// As in a rapid reset: some bytes each, but each costs the work of a call.
void TestConnectionWatch::calls_that_are_given_up_count() {
  Door door;
  const std::size_t peer = door.connect("1.2.3.4");
  door.greet(peer);
  int begun = 0;
  while (door.watch.started(door.open[peer].remote, PeerRank::Stranger, door.now)) ++begun;
  QVERIFY2(begun >= 500 && begun <= 512, qPrintable(QString::number(begun)));
  door.now += 10 * second;
  QVERIFY(door.watch.started(door.open[peer].remote, PeerRank::Stranger, door.now));
  // On eight connections of one group, the bytes that they stand for are too many.
  std::vector<std::size_t> others;
  for (int i = 0; i < 8; ++i) others.push_back(door.connect("1.2.3.5"));
  for (const std::size_t other : others)
    while (door.watch.started(door.open[other].remote, PeerRank::Stranger, door.now)) continue;
  door.review();
  for (const std::size_t other : others) QVERIFY(door.gone[other]);
}

void TestConnectionWatch::a_connection_without_calls_ends() {
  Door door;
  const std::size_t silent = door.connect("1.2.3.4"), greeted = door.connect("1.2.3.5"),
                    member = door.connect("1.2.3.6");
  door.greet(greeted);
  door.greet(member, PeerRank::Known);
  door.now += 19 * second;
  QVERIFY(door.review().empty());
  door.now += 2 * second;
  QCOMPARE(door.review(), std::vector<Refusal>{Refusal::NoCalls});
  QVERIFY(door.gone[silent]);
  door.now += 150 * second;
  QCOMPARE(door.review(), std::vector<Refusal>{Refusal::NoCalls});
  QVERIFY(door.gone[greeted] && !door.gone[member]);
}

void TestConnectionWatch::strangers_go_first_when_memory_is_short() {
  Door door;
  std::vector<std::size_t> strangers;
  for (int i = 0; i < 8; ++i) {
    strangers.push_back(door.connect(("1.2." + std::to_string(i) + ".4").c_str()));
    door.greet(strangers.back());
  }
  const std::size_t known = door.connect("5.5.5.5"), voter = door.connect("6.6.6.6");
  door.greet(known, PeerRank::Known);
  door.greet(voter, PeerRank::Voter);
  door.receive(strangers[3], mebi);
  QCOMPARE(door.review(true), (std::vector<Refusal>{Refusal::MemoryShort, Refusal::MemoryShort}));
  QVERIFY(door.gone[strangers[3]]);
  int reviews = 1;
  for (; !door.gone[known] && reviews < 20; ++reviews) door.review(true);
  for (const std::size_t stranger : strangers) QVERIFY(door.gone[stranger]);
  QVERIFY(!door.gone[voter]);
  QVERIFY(reviews > 4);
  // The memory of the one who is known may be free in a moment.
  door.now += second;
  QVERIFY(door.review(true).empty());
  door.now += second;
  door.review(true);
  QVERIFY(door.gone[voter]);
}

// The look at all connections ten times a second costs more than an idle node's other work.
void TestConnectionWatch::an_idle_network_is_quiet() {
  Door door;
  const std::size_t member = door.connect("203.0.113.1"), stranger = door.connect("198.51.100.1");
  door.greet(member, PeerRank::Known);
  door.review();
  QVERIFY2(!door.watch.quiet(), "a connection without a call could be the beginning of a flood");
  door.greet(stranger);
  door.review();
  QVERIFY(door.watch.quiet());
  door.call(member, 4 * kibi, PeerRank::Known);
  door.call(stranger, 4 * kibi);
  door.review();
  QVERIFY2(door.watch.quiet(), "heartbeats are no traffic");
  door.receive(member, 100 * kibi);
  door.review();
  QVERIFY(!door.watch.quiet());
  door.review();
  QVERIFY(door.watch.quiet());
  door.review(/*memory_is_short=*/true);
  QVERIFY(!door.watch.quiet());
}

void TestConnectionWatch::a_shaped_flood_waits_data() {
  QTest::addColumn<double>("burst");
  QTest::addColumn<bool>("held");
  QTest::newRow("limited") << ConnectionLimits().shaped_burst << true;
  QTest::newRow("control: as much as one likes") << 1e15 << false;
}

void TestConnectionWatch::a_shaped_flood_waits() {
  QFETCH(double, burst);
  QFETCH(bool, held);
  ConnectionLimits limits;
  limits.shaped_burst = burst;
  Door door(limits);
  const std::size_t peer = door.connect_shaped("1.2.3.4");
  door.greet(peer);
  const std::uint64_t passed = door.flood(peer, 10 * second);
  QVERIFY2((passed <= (64 + 10 * 16 + 8) * kibi) == held, qPrintable(QString::number(passed / kibi)));
  QVERIFY(passed >= 10 * 15 * kibi);
  QVERIFY(door.review().empty());  // it waits; it does not end
  // A hundred connections after it, from the group, get what is spared and no more.
  std::uint64_t more = 0;
  for (int i = 0; i < 100; ++i) {
    const std::size_t again = door.connect_shaped("1.2.3.5");
    more += door.flood(again, second / 10);
    door.watch.ended(door.open[again], door.now);
    door.gone[again] = true;
  }
  QVERIFY2((more <= (100 * 8 + 10 * 16) * kibi) == held, qPrintable(QString::number(more / kibi)));
}

void TestConnectionWatch::calls_over_a_shaped_connection_pass() {
  Door door;
  const std::size_t stranger = door.connect_shaped("1.2.3.4"), known = door.connect_shaped("5.6.7.8");
  QVERIFY(door.passes(stranger, 3 * kibi));
  door.greet(stranger);
  QVERIFY(door.passes(known, 3 * kibi));
  door.greet(known, PeerRank::Known);
  for (int i = 0; i < 1000; ++i) {
    const std::uint64_t bytes = i % 100 == 0 ? 48 * kibi : 300;
    QVERIFY(door.passes(stranger, bytes + 600));
    QVERIFY(door.watch.started(door.open[stranger].remote, PeerRank::Stranger, door.now));
    door.watch.answered(door.open[stranger].remote, PeerRank::Stranger, bytes, door.now);
    QVERIFY(door.passes(known, 4 * mebi));
    QVERIFY(door.watch.started(door.open[known].remote, PeerRank::Known, door.now));
    door.watch.answered(door.open[known].remote, PeerRank::Known, 4 * mebi, door.now);
    QVERIFY(door.review().empty());
  }
}

// As in a rapid reset: the charge of calls that begin holds the rest.
void TestConnectionWatch::calls_that_begin_hold_a_shaped_connection() {
  Door door;
  const std::size_t peer = door.connect_shaped("1.2.3.4");
  std::uint64_t passed = 0, calls = 0;
  for (int i = 0; i < 1000; ++i) {
    const auto grant = door.watch.allow(door.open[peer].remote, passed, door.now);
    passed += grant.bytes;
    for (; calls < passed / 58; ++calls)
      static_cast<void>(door.watch.started(door.open[peer].remote, PeerRank::Stranger, door.now));
    door.now += std::chrono::milliseconds(5);
  }
  // Five seconds: a piece of the burst, and what the rate pays at 4 KiB a call.
  QVERIFY2(calls <= 3 * kibi / 58, qPrintable(QString::number(calls)));
}

void TestConnectionWatch::the_neighbour_of_a_shaped_flood_is_served() {
  Door door;
  const std::size_t flood = door.connect_shaped("1.2.3.4");
  door.flood(flood, second);
  const std::size_t neighbour = door.connect_shaped("1.2.3.5"), other = door.connect_shaped("9.9.9.9");
  for (int i = 0; i < 20; ++i) {
    door.flood(flood, second / 20);
    QVERIFY(door.passes(neighbour, i == 0 ? 3 * kibi : 900));
    if (i == 0) door.greet(neighbour);
    QVERIFY(door.watch.started(door.open[neighbour].remote, PeerRank::Stranger, door.now));
    door.watch.answered(door.open[neighbour].remote, PeerRank::Stranger, 300, door.now);
  }
  QVERIFY(door.passes(other, 60 * kibi));
}

void TestConnectionWatch::a_held_connection_ends() {
  ConnectionLimits limits;
  limits.shaped_per_second = 1;
  Door door(limits);
  const std::size_t peer = door.connect_shaped("1.2.3.4");
  door.flood(peer, 9 * second);
  QVERIFY(door.review().empty());
  door.flood(peer, 2 * second);
  QCOMPARE(door.review(), std::vector<Refusal>{Refusal::Unearned});
}

// Each costs a signature before anything is known of the caller.
void TestConnectionWatch::handshakes_of_a_group_are_limited() {
  ConnectionLimits unlimited;
  unlimited.greetings_burst = 0;
  Door door, control(unlimited);
  const auto made_in_a_minute = [](Door& at, const char* prefix) {
    int made = 0;
    for (int i = 0; i < 6000; ++i) {
      const std::string ip = prefix + std::to_string(i % 250);
      made += at.watch.may_greet(*platform::parse_ip(ip), at.now);
      at.now += second / 100;
    }
    return made;
  };
  const int made = made_in_a_minute(door, "1.2.3.");
  QVERIFY2(made >= 64 + 58 && made <= 64 + 61, qPrintable(QString::number(made)));
  QVERIFY(door.watch.may_greet(*platform::parse_ip("1.2.4.1"), door.now));
  QCOMPARE(made_in_a_minute(door, "192.168.1."), 6000);  // a household
  QCOMPARE(made_in_a_minute(control, "1.2.3."), 6000);
}

NS_TEST(TestConnectionWatch)
#include "test_connection_watch.moc"
