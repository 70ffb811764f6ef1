// Reports of the training's status get around: nodes on a virtual clock and a seeded network with losses,
// some of which nobody can dial, and some Byzantine.
#include <QtTest>

#include "core/sim/network.h"
#include "core/status/gossip.h"
#include "tests/support/keys.h"
#include "tests/support/test_main.h"
#include "tests/support/time.h"

using namespace neuroshard;
using namespace neuroshard::status;

namespace {

using neuroshard::test::second;

Hash256 filled(std::uint8_t value) {
  Hash256 hash{};
  hash.fill(value);
  return hash;
}
const Hash256 network_id = filled(7);

using neuroshard::test::key_numbered;

// The world's time, as a clock shows it that somebody sets.
class SetClock final : public Clock {
 public:
  explicit SetClock(const Clock& right) : right_(right) {}
  MonotonicTime monotonic_now() const override { return right_.monotonic_now(); }
  WallTime wall_now() const override { return right_.wall_now() + ahead; }

  std::chrono::milliseconds ahead{0};

 private:
  const Clock& right_;
};

struct Host {
  crypto::KeyPair keys;
  sim::HostExecutor executor;
  SetClock clock;
  sim::Host number = 0;
  net::Contact contact;
  std::unique_ptr<StatusGossip> gossip;

  Host(std::uint16_t seed, sim::World& world)
      : keys(key_numbered(seed)), executor(world), clock(world.clock()) {}
};

OwnStatus status_of(double loss, std::uint64_t round = 1) {
  OwnStatus status;
  status.round = round;
  status.anchor = filled(static_cast<std::uint8_t>(round));
  status.training = true;
  status.loss = loss;
  return status;
}

// Each node knows `known` others.
class Nodes {
 public:
  Nodes(std::size_t count, double loss, std::size_t known, bool first_is_hidden = false,
        std::chrono::milliseconds delegation_of_first = std::chrono::hours(24))
      : network_(world, {loss}, 11), rng_(5) {
    for (std::size_t i = 0; i < count; ++i) {
      auto host = std::make_unique<Host>(static_cast<std::uint16_t>(i + 1), world);
      host->contact = {
          crypto::node_id(host->keys.public_key()),
          {*platform::parse_ip("10.0." + std::to_string(i / 250) + "." + std::to_string(1 + i % 250)), 9000}};
      const bool hidden = first_is_hidden && i == 0;
      host->number = network_.add(host->contact.id, host->contact.endpoint, sim::Nat::None,
                                  [](const net::Caller&, net::Method, ByteSpan, const net::Respond&) {});
      GossipServices services{host->keys, network_.caller(host->number), host->executor, host->clock,
                              [this, i, count, known](std::size_t most) {
                                std::vector<net::Contact> some;
                                for (std::size_t n = 0; n < most; ++n) {
                                  const std::size_t other = (i + 1 + rng_.below(known)) % count;
                                  if (other != i && !(hidden_ && other == 0))
                                    some.push_back(hosts[other]->contact);
                                }
                                return some;
                              }};
      hidden_ = first_is_hidden;
      const std::chrono::milliseconds life = i == 0 ? delegation_of_first : std::chrono::hours(24);
      const crypto::Delegation wallet =
          crypto::delegate(key_numbered(static_cast<std::uint16_t>(1000 + i)), host->keys.public_key(),
                           network_id, world.clock().wall_now() + life, 1);
      host->gossip =
          std::make_unique<StatusGossip>(std::move(services), network_id, wallet, GossipOptions{}, i);
      network_.set_handler(
          host->number, [gossip = host->gossip.get(), hidden](const net::Caller& from, net::Method method,
                                                              ByteSpan request, const net::Respond& respond) {
            if (hidden || method != net::Method::StatusPull) return;
            gossip->on_call(from, request, respond);
          });
      hosts.push_back(std::move(host));
    }
    for (std::size_t i = 0; i < count; ++i) {
      hosts[i]->gossip->set_own(status_of(3.0 + 0.001 * static_cast<double>(i)));
      hosts[i]->gossip->start();
    }
  }
  ~Nodes() {
    for (const auto& host : hosts) host->executor.stop();
  }
  bool all_know(std::size_t count) const {
    return std::all_of(hosts.begin(), hosts.end(),
                       [&](const auto& host) { return host->gossip->table().all().size() == count; });
  }
  std::uint64_t bytes() const {
    std::uint64_t sum = 0;
    for (const auto& host : hosts) sum += host->gossip->counts().sent;
    return sum;
  }
  net::PeerCaller& caller(std::size_t i) { return network_.caller(hosts[i]->number); }

  sim::World world;
  std::vector<std::unique_ptr<Host>> hosts;

 private:
  sim::Network network_;
  Rng rng_;
  bool hidden_ = false;
};

}  // namespace

class TestStatusGossip : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void everybody_hears_of_everybody();
  void who_can_not_be_dialled_is_heard();
  void who_goes_is_forgotten();
  void a_new_round_is_told_at_once_but_not_too_often();
  void a_clock_that_is_set_right_is_believed();
  void a_report_from_the_future_hides_no_other();
  void a_delegation_that_expires_leaves_all_reports();
  void an_unreadable_request_is_refused();
  void a_report_that_is_not_the_callers_or_does_not_hold_is_not_passed_on();
};

void TestStatusGossip::everybody_hears_of_everybody() {
  Nodes nodes(24, 0.1, 5);
  QVERIFY(nodes.world.run_until([&] { return nodes.all_know(24); }, nodes.world.now() + 120 * second));
  // They go on being fresh.
  nodes.world.run_for(310 * second);
  QVERIFY(nodes.all_know(24));
  for (const auto& host : nodes.hosts) {
    const auto loss = summarise(host->gossip->table()).loss;
    QVERIFY(loss && loss->loss >= 3.0 && loss->loss < 3.03);
    QVERIFY(!host->gossip->table().count(Taken::Denied));
  }
  const std::uint64_t before = nodes.bytes();
  nodes.world.run_for(100 * second);
  const double each = static_cast<double>(nodes.bytes() - before) / 24 / 100;
  qInfo("%.0f bytes sent per node and second, 24 nodes", each);
  QVERIFY(each < 4000);
}

void TestStatusGossip::who_can_not_be_dialled_is_heard() {
  Nodes nodes(8, 0, 8, true);
  QVERIFY(nodes.world.run_until([&] { return nodes.all_know(8); }, nodes.world.now() + 60 * second));
}

void TestStatusGossip::who_goes_is_forgotten() {
  Nodes nodes(6, 0, 6);
  QVERIFY(nodes.world.run_until([&] { return nodes.all_know(6); }, nodes.world.now() + 60 * second));
  nodes.hosts[5]->executor.stop();
  nodes.world.run_for(250 * second);
  QCOMPARE(nodes.hosts[0]->gossip->table().all().size(), std::size_t{6});
  nodes.world.run_for(80 * second);
  for (std::size_t i = 0; i < 5; ++i) QCOMPARE(nodes.hosts[i]->gossip->table().all().size(), std::size_t{5});
}

void TestStatusGossip::a_new_round_is_told_at_once_but_not_too_often() {
  Nodes nodes(2, 0, 2);
  nodes.world.run_for(20 * second);
  const net::NodeId id = nodes.hosts[0]->contact.id;
  const auto round_at_other = [&] { return nodes.hosts[1]->gossip->table().find(id)->status.round; };
  nodes.hosts[0]->gossip->set_own(status_of(3, 2));
  nodes.world.run_for(11 * second);
  QCOMPARE(round_at_other(), std::uint64_t{2});
  // A flood of rounds is a report every three seconds.
  std::set<WallTime> made;
  for (int i = 0; i < 100; ++i) {
    nodes.hosts[0]->gossip->set_own(status_of(3, static_cast<std::uint64_t>(3 + i)));
    nodes.world.run_for(std::chrono::milliseconds(100));
    made.insert(nodes.hosts[0]->gossip->table().find(id)->made);
  }
  QVERIFY(made.size() <= 5);
  nodes.world.run_for(20 * second);
  QCOMPARE(round_at_other(), std::uint64_t{102});
}

// Two hours ahead at first: nobody takes its reports, and its own table has one from the future.
void TestStatusGossip::a_clock_that_is_set_right_is_believed() {
  Nodes nodes(3, 0, 3);
  Host& host = *nodes.hosts[0];
  const auto made_at = [&](std::size_t i) {
    const StatusReport* report = nodes.hosts[i]->gossip->table().find(host.contact.id);
    return report == nullptr ? WallTime() : report->made;
  };
  host.clock.ahead = std::chrono::hours(2);
  nodes.world.run_for(60 * second);
  const WallTime set_right = nodes.world.clock().wall_now();
  QVERIFY(made_at(0) > set_right + std::chrono::hours(1));
  QVERIFY(made_at(1) < set_right);
  host.clock.ahead = std::chrono::milliseconds(0);
  nodes.world.run_for(60 * second);
  for (std::size_t i = 0; i < 3; ++i)
    QVERIFY(made_at(i) > set_right && made_at(i) <= nodes.world.clock().wall_now());
}

// Its report is the newest, so the first of each answer. The node in between has a clock that takes it.
void TestStatusGossip::a_report_from_the_future_hides_no_other() {
  Nodes nodes(4, 0, 1);
  nodes.hosts[1]->clock.ahead = std::chrono::seconds(50);
  nodes.hosts[2]->clock.ahead = std::chrono::seconds(100);
  const WallTime start = nodes.world.clock().wall_now();
  nodes.world.run_for(120 * second);
  const StatusTable& table = nodes.hosts[0]->gossip->table();
  const StatusReport* between = table.find(nodes.hosts[1]->contact.id);
  QVERIFY(between != nullptr && between->made > start + std::chrono::seconds(60));
  QVERIFY(table.count(Taken::Future) > 0);
  QCOMPARE(table.count(Taken::Denied), std::uint64_t{0});
}

// The delegation of the first node ends while its report of the 30th second is on the way.
void TestStatusGossip::a_delegation_that_expires_leaves_all_reports() {
  Nodes nodes(3, 0, 3, false, std::chrono::milliseconds(30'001));
  const net::NodeId first = nodes.hosts[0]->contact.id;
  QVERIFY(nodes.world.run_until([&] { return nodes.all_know(3); }, nodes.world.now() + 29 * second));
  for (const auto& host : nodes.hosts) QVERIFY(host->gossip->table().find(first)->delegation);
  nodes.world.run_for(120 * second);
  QVERIFY(nodes.all_know(3));
  for (const auto& host : nodes.hosts) {
    QVERIFY(!host->gossip->table().find(first)->delegation);
    QCOMPARE(host->gossip->table().count(Taken::Denied), std::uint64_t{0});
  }
}

void TestStatusGossip::an_unreadable_request_is_refused() {
  Nodes nodes(2, 0, 2);
  const std::uint64_t bad = nodes.hosts[1]->gossip->counts().refused_requests;
  nodes.caller(0).call(nodes.hosts[1]->contact, net::Method::StatusPull, Bytes(100, 0xff), 5 * second,
                       [](const Expected<Bytes>&) {});
  nodes.world.run_for(4 * second);
  QCOMPARE(nodes.hosts[1]->gossip->counts().refused_requests, bad + 1);
}

void TestStatusGossip::a_report_that_is_not_the_callers_or_does_not_hold_is_not_passed_on() {
  Nodes nodes(3, 0, 3);
  const auto offer = [&](const StatusReport& report) {
    PullRequest request;
    request.own = report;
    nodes.caller(0).call(nodes.hosts[1]->contact, net::Method::StatusPull, encode_pull(request), 5 * second,
                         [](const Expected<Bytes>&) {});
    nodes.world.run_for(40 * second);
  };
  const crypto::KeyPair stranger = key_numbered(900);
  const WallTime made = nodes.world.clock().wall_now();
  offer(sign_report(status_of(99), made, std::nullopt, stranger, network_id));
  const StatusReport foreign =
      sign_report(status_of(99, 40), nodes.world.clock().wall_now() + std::chrono::seconds(50), std::nullopt,
                  nodes.hosts[0]->keys, filled(8));
  offer(foreign);
  for (const auto& host : nodes.hosts) {
    QCOMPARE(host->gossip->table().all().size(), std::size_t{3});
    for (const auto& [id, report] : host->gossip->table().all()) QVERIFY(*report.status.loss < 4);
  }
  QCOMPARE(nodes.hosts[1]->gossip->table().count(Taken::Denied), std::uint64_t{1});
}

NS_TEST(TestStatusGossip)
#include "test_gossip.moc"
