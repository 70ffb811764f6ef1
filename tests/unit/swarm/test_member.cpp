// Members of a network on the simulated world: how they find each other, with trackers that work, die or lie,
// and how they learn whether they are reached from outside.
#include <QtTest>
#include <deque>

#include "core/sim/transport.h"
#include "core/swarm/member.h"

using namespace neuroshard;
using namespace neuroshard::swarm;

namespace {

constexpr Duration second = std::chrono::seconds(1);
constexpr Duration minute = std::chrono::minutes(1);

Hash256 network_id() {
  Hash256 id{};
  id.fill(7);
  return id;
}

struct Host {
  explicit Host(sim::World& world) : executor(world), bans(world.clock()) {}
  ~Host() {
    if (transport) transport->serve(nullptr);
    member.reset();
  }
  sim::HostExecutor executor;
  net::BanList bans;
  net::RefusalCounts refusals;
  std::optional<crypto::KeyPair> key;
  platform::Endpoint endpoint;
  std::unique_ptr<sim::SimTransport> transport;
  std::unique_ptr<Member> member;
  net::NodeId id{};
};

class Village {
 public:
  explicit Village(double loss = 0) : network_(world, options(loss), 5) {}
  ~Village() { hosts.clear(); }  // before what they stand on

  Host& add(const std::vector<Host*>& sources, bool tracker = false, bool listens = true) {
    hosts.emplace_back(world);
    Host& host = hosts.back();
    const auto number = static_cast<std::uint8_t>(hosts.size());
    Hash256 seed{};
    seed.fill(number);
    host.key.emplace(crypto::KeyPair::from_seed(seed));
    host.id = crypto::node_id(host.key->public_key());
    host.endpoint = {platform::IpAddress::v4(11, number, 0, 1), 9000};
    host.transport = std::make_unique<sim::SimTransport>(
        sim::TransportServices{world, network_, population_, host.bans, host.refusals}, host.executor,
        host.id, host.endpoint, sim::Nat::None, net::Hello{});
    MemberOptions member;
    member.network_id = network_id();
    member.program = "test";
    member.port = listens ? 9000 : 0;
    member.tracker = tracker;
    for (const Host* source : sources) member.sources.push_back({source->endpoint, source->id});
    host.member = std::make_unique<Member>(
        MemberServices{*host.key, *host.transport, host.executor, world.clock(), logger_}, member, number);
    host.transport->serve(host.member.get());
    host.member->start();
    return host;
  }
  void power_off(Host& host) { network_.set_online(host.transport->host(), false); }
  void power_on(Host& host) { network_.set_online(host.transport->host(), true); }
  bool run_until(const std::function<bool()>& condition, Duration limit) {
    return world.run_until(condition, world.now() + limit);
  }

  sim::World world;
  std::deque<Host> hosts;

 private:
  static sim::NetworkOptions options(double loss) {
    sim::NetworkOptions o;
    o.loss = loss;
    return o;
  }
  NullLogger logger_;
  sim::Network network_;
  sim::Population population_;
};

}  // namespace

class TestMember : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void nodes_find_each_other_by_a_tracker();
  void the_network_outlives_its_tracker();
  void a_dead_tracker_is_tried_until_it_lives();
  void a_node_that_does_not_listen_is_a_client();
  void records_travel_by_the_table();
  void with_loss();
};

void TestMember::nodes_find_each_other_by_a_tracker() {
  Village village;
  Host& tracker = village.add({}, /*tracker=*/true);
  std::vector<Host*> nodes;
  for (int i = 0; i < 10; ++i) nodes.push_back(&village.add({&tracker}));
  QVERIFY(village.run_until(
      [&] {
        return std::all_of(nodes.begin(), nodes.end(), [](const Host* n) {
          const MemberView view = n->member->view();
          return view.reachable && view.table >= 5 && view.known >= 9;
        });
      },
      5 * minute));
  QCOMPARE(tracker.member->statistics().nodes, std::size_t(10));
  QCOMPARE(tracker.member->statistics().reachable, std::size_t(10));
  QVERIFY(nodes[0]->member->view().seen_at->ip == nodes[0]->endpoint.ip);
  village.power_off(*nodes[3]);  // gone from the tracker after 30 s
  QVERIFY(village.run_until([&] { return tracker.member->statistics().nodes == 9; }, minute));
}

void TestMember::the_network_outlives_its_tracker() {
  Village village;
  Host& tracker = village.add({}, true);
  Host& first = village.add({&tracker});
  std::vector<Host*> nodes;
  for (int i = 0; i < 5; ++i) nodes.push_back(&village.add({&tracker}));
  QVERIFY(village.run_until([&] { return nodes.back()->member->view().table >= 4; }, 5 * minute));
  village.power_off(tracker);
  village.world.run_for(2 * minute);
  Host& late = village.add({&tracker, &first});  // by a peer that it knows
  QVERIFY(village.run_until(
      [&] {
        const MemberView view = late.member->view();
        return view.reachable && view.table >= 4;
      },
      5 * minute));
  QVERIFY(!late.member->view().sources[0].connected);
  QVERIFY(late.member->view().sources[0].state.find("tried again") != std::string::npos ||
          late.member->view().sources[0].state == "connecting");
}

void TestMember::a_dead_tracker_is_tried_until_it_lives() {
  Village village;
  Host& tracker = village.add({}, true);
  village.power_off(tracker);
  Host& a = village.add({&tracker});
  Host& b = village.add({&tracker});
  village.world.run_for(std::chrono::hours(2));
  QCOMPARE(a.member->view().table, std::size_t(0));
  village.power_on(tracker);
  QVERIFY(village.run_until([&] { return a.member->view().table == 1 && b.member->view().table == 1; },
                            5 * minute));
}

void TestMember::a_node_that_does_not_listen_is_a_client() {
  Village village;
  Host& tracker = village.add({}, true);
  Host& a = village.add({&tracker});
  Host& quiet = village.add({&tracker}, false, /*listens=*/false);
  QVERIFY(village.run_until([&] { return quiet.member->view().table == 1; }, 5 * minute));
  const MemberView view = quiet.member->view();
  QVERIFY(!view.reachable);
  QCOMPARE(view.why_not, std::string("this node does not listen"));
  village.world.run_for(2 * minute);
  QCOMPARE(a.member->view().table, std::size_t(0));  // nobody is sent there
  QCOMPARE(tracker.member->statistics().nodes, std::size_t(2));
  QCOMPARE(tracker.member->statistics().reachable, std::size_t(1));
}

void TestMember::records_travel_by_the_table() {
  Village village;
  Host& tracker = village.add({}, true);
  std::vector<Host*> nodes;
  for (int i = 0; i < 8; ++i) nodes.push_back(&village.add({&tracker}));
  village.world.run_for(3 * minute);
  std::optional<Expected<dht::LookupResult>> found;
  nodes[0]->member->table().get("/nodes/" + to_hex(nodes[6]->id),
                                [&](auto result) { found.emplace(std::move(result)); });
  QVERIFY(village.run_until([&] { return found.has_value(); }, minute));
  QVERIFY(found->ok());
  QCOMPARE((*found)->records.size(), std::size_t(1));
  const auto record = net::decode_node_record((*found)->records[0].payload).value();
  QVERIFY(record.id() == nodes[6]->id);
  QVERIFY(net::check_node_record(record, network_id(), village.world.clock().wall_now()).ok());
}

void TestMember::with_loss() {
  Village village(0.1);
  Host& tracker = village.add({}, true);
  std::vector<Host*> nodes;
  for (int i = 0; i < 10; ++i) nodes.push_back(&village.add({&tracker}));
  QVERIFY(village.run_until(
      [&] {
        return std::all_of(nodes.begin(), nodes.end(),
                           [](const Host* n) { return n->member->view().table >= 5; });
      },
      std::chrono::hours(1)));
}

QTEST_GUILESS_MAIN(TestMember)
#include "test_member.moc"
