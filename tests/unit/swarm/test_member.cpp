// Members of a network on the simulated world: how they find each other, with trackers that work, die or lie,
// and how they learn whether they are reached from outside.
#include <QtTest>
#include <deque>
#include <map>
#include <set>

#include "core/base/check.h"
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

// Names, as a server of names gives them that is away for the first few questions.
class Names final : public NameResolver {
 public:
  Names(Executor& executor, std::map<std::string, platform::Endpoint> known, int away)
      : executor_(executor), known_(std::move(known)), away_(away) {}
  void look_up(const std::string& name, Found found) override {
    ++asked;
    Expected<std::vector<platform::Endpoint>> answer = make_error(ErrorCode::Unavailable, "no answer now");
    const auto entry = known_.find(name);
    if (asked > away_ && entry != known_.end()) answer = std::vector{entry->second};
    QVERIFY(executor_.post([found = std::move(found), answer] { found(answer); }));
  }
  int asked = 0;

 private:
  Executor& executor_;
  std::map<std::string, platform::Endpoint> known_;
  int away_;
};

struct Host {
  explicit Host(sim::World& world)
      : executor(world), bans(world.clock()), conduct(bans, world.clock(), false) {}
  ~Host() {
    if (transport) transport->serve(nullptr);
    member.reset();
  }
  sim::HostExecutor executor;
  net::BanList bans;
  net::Conduct conduct;
  net::RefusalCounts refusals;
  std::optional<crypto::KeyPair> key;
  platform::Endpoint endpoint;
  std::unique_ptr<sim::SimTransport> transport;
  std::unique_ptr<Names> names;
  std::unique_ptr<Member> member;
  net::NodeId id{};
};

// How one member differs from the others.
using Tune = std::function<void(Host&, MemberOptions&)>;

class Village {
 public:
  explicit Village(double loss = 0) : network_(world, options(loss), 5) {}
  ~Village() {
    // However slow, away or lost they were: nobody of these is banned who is not meant to be.
    for (const Host& host : hosts)
      for (const net::Ban& ban : host.bans.all())
        if (meant_to_be_banned.count(ban.id) == 0) QTest::qFail(ban.reason.c_str(), __FILE__, __LINE__);
    hosts.clear();  // before what they stand on
  }

  Host& add(const std::vector<Host*>& sources, bool tracker = false, bool listens = true,
            const Tune& tune = {}) {
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
    MemberOptions member = listening();
    if (!listens) member.port = 0;
    member.tracker = tracker;
    for (const Host* source : sources) member.sources.push_back({source->endpoint, source->id});
    if (tune) tune(host, member);
    start(host, std::move(member), number);
    return host;
  }
  // The program ended and is started again, with another seed.
  void restart(Host& host, MemberOptions member, std::uint64_t seed) {
    host.transport->serve(nullptr);
    host.member.reset();
    start(host, std::move(member), seed);
  }
  static MemberOptions listening() {
    MemberOptions member;
    member.network_id = network_id();
    member.program = "test";
    member.port = 9000;
    return member;
  }
  void power_off(Host& host) { network_.set_online(host.transport->host(), false); }
  void power_on(Host& host) { network_.set_online(host.transport->host(), true); }
  bool run_until(const std::function<bool()>& condition, Duration limit) {
    return world.run_until(condition, world.now() + limit);
  }

  sim::World world;
  std::deque<Host> hosts;
  std::set<net::NodeId> meant_to_be_banned;

 private:
  void start(Host& host, MemberOptions member, std::uint64_t seed) {
    host.member = std::make_unique<Member>(
        MemberServices{*host.key, *host.transport, host.executor, world.clock(), logger_, host.names.get(),
                       nullptr, nullptr, nullptr, &host.conduct},
        std::move(member), seed);
    host.transport->serve(host.member.get());
    host.member->start();
  }
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
  void who_sends_nonsense_is_banned();
  void who_does_not_wait_is_banned();
  void good_peers_are_enough_for_the_next_start();
  void a_forged_cache_leads_nowhere();
  void a_long_cache_of_dead_peers_is_gone_through();
  void names_are_looked_up_until_they_are_known();
  void records_name_the_wallet();
  void a_foreign_delegation_is_refused();
  void who_is_found_elsewhere_is_somebody_to_begin_with();
  void dead_places_that_are_found_cost_little();
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

namespace {

// What `from` hears when it asks `to`.
Expected<Bytes> ask(Village& village, Host& from, const Host& to, net::Method method, Bytes request) {
  std::optional<Expected<Bytes>> answer;
  std::shared_ptr<net::PeerChannel> open;
  from.transport->connect({to.endpoint, to.id}, net::connect_deadline,
                          [&](Expected<std::shared_ptr<net::PeerChannel>> channel) {
                            if (!channel.ok()) return answer.emplace(channel.error()), void();
                            open = *channel;
                            open->call(method, std::move(request), second,
                                       [&](Expected<Bytes> result) { answer.emplace(std::move(result)); });
                          });
  village.run_until([&] { return answer.has_value(); }, minute);
  return answer.value_or(Expected<Bytes>(make_error(ErrorCode::Timeout, "nothing")));
}

}  // namespace

void TestMember::who_sends_nonsense_is_banned() {
  Village village;
  Host& tracker = village.add({}, true);
  Host& a = village.add({&tracker});
  Host& liar = village.add({&tracker});
  village.meant_to_be_banned.insert(liar.id);
  village.world.run_for(minute);
  // Another's record, to be registered; its own, altered; and what can't be read.
  net::NodeRecord forged = *a.member->book().find(liar.id, village.world.clock().wall_now());
  forged.memory_bytes += 1;
  forged.sequence += 1;
  QVERIFY(!ask(village, liar, tracker, net::Method::TrackerRegister, net::encode_node_record(forged)).ok());
  QCOMPARE(tracker.conduct.faults(net::Fault::BadSignature), std::uint64_t(1));
  const auto foreign = *liar.member->book().find(a.id, village.world.clock().wall_now());
  QVERIFY(!ask(village, liar, tracker, net::Method::TrackerRegister, net::encode_node_record(foreign)).ok());
  QCOMPARE(tracker.conduct.faults(net::Fault::OthersRecord), std::uint64_t(1));
  QVERIFY(!tracker.bans.reason(liar.id));
  for (int i = 0; i < 2; ++i) QVERIFY(!ask(village, liar, tracker, net::Method::DhtStore, Bytes(50, 1)).ok());
  const auto reason = tracker.bans.reason(liar.id);
  QVERIFY(reason.has_value());
  const auto answer = ask(village, liar, tracker, net::Method::Ping, {});
  QVERIFY(!answer.ok());
  QCOMPARE(answer.error().code, ErrorCode::Denied);
  QVERIFY(ask(village, a, tracker, net::Method::Ping, {}).ok());
}

void TestMember::who_does_not_wait_is_banned() {
  Village village;
  Host& tracker = village.add({}, true);
  Host& a = village.add({&tracker});
  Host& hasty = village.add({&tracker});
  village.meant_to_be_banned.insert(hasty.id);
  village.world.run_for(minute);
  std::shared_ptr<net::PeerChannel> open;
  hasty.transport->connect({a.endpoint, a.id}, net::connect_deadline,
                           [&](auto channel) { open = channel.ok() ? *channel : nullptr; });
  QVERIFY(village.run_until([&] { return open != nullptr; }, minute));
  int made = 0;
  while (!a.bans.reason(hasty.id) && made < 5000) {
    open->call(net::Method::Ping, {}, second, [](const Expected<Bytes>&) {});
    ++made;
    village.world.run_for(std::chrono::milliseconds(1));
  }
  QVERIFY2(made > 300 && made < 5000, qPrintable(QString::number(made)));
  const std::string reason = *a.bans.reason(hasty.id);
  QVERIFY2(reason.find("requests far beyond the limits (") == 0, reason.c_str());
}

namespace {

crypto::KeyPair key_of(std::uint8_t number) {
  Hash256 seed{};
  seed.fill(number);
  return crypto::KeyPair::from_seed(seed);
}

// A record as a node there would have signed it.
CachedPeer cached(std::uint8_t number, const platform::IpAddress& ip, WallTime made) {
  CachedPeer peer;
  peer.heard = peer.record.made = made;
  peer.record.expires = made + std::chrono::hours(1);
  peer.record.sequence = 1;
  peer.record.endpoints = {{net::Reach::Direct, {ip, 9000}}};
  NS_CHECK(net::sign_node_record(peer.record, key_of(number), network_id()).ok());
  return peer;
}

}  // namespace

void TestMember::good_peers_are_enough_for_the_next_start() {
  Village village;
  Host& tracker = village.add({}, true);
  Host& a = village.add({&tracker});
  Host& b = village.add({&tracker});
  QVERIFY(village.run_until(
      [&] { return a.member->good_peers().size() == 1 && b.member->good_peers().size() == 1; }, 5 * minute));
  MemberOptions of_a = Village::listening(), of_b = of_a;
  of_a.sources = of_b.sources = {{tracker.endpoint, tracker.id}};
  of_a.cached = a.member->good_peers();
  of_b.cached = b.member->good_peers();
  QVERIFY(of_a.cached[0].record.id() == b.id);
  village.power_off(tracker);
  village.power_off(a);
  village.power_off(b);
  village.world.run_for(std::chrono::hours(30));  // the records have expired by now
  village.power_on(a);
  village.power_on(b);
  village.restart(a, of_a, 71);
  village.restart(b, of_b, 72);
  QVERIFY(village.run_until(
      [&] {
        const MemberView at_a = a.member->view(), at_b = b.member->view();
        return at_a.reachable && at_b.reachable && at_a.known == 1 && at_b.known == 1 && at_a.table == 1 &&
               at_b.table == 1;
      },
      5 * minute));
  // Without it they are lost, as the tracker is gone.
  of_a.cached.clear();
  of_b.cached.clear();
  village.restart(a, of_a, 73);
  village.restart(b, of_b, 74);
  village.world.run_for(30 * minute);
  QCOMPARE(a.member->view().table, std::size_t(0));
  QCOMPARE(a.member->view().known, std::size_t(0));
}

void TestMember::a_forged_cache_leads_nowhere() {
  Village village;
  Host& there = village.add({});
  const WallTime now = village.world.clock().wall_now();
  // Altered after it was signed; of another network; of a private address; somebody else answers there.
  CachedPeer altered = cached(1, platform::IpAddress::v4(11, 9, 0, 1), now);
  altered.record.endpoints[0].endpoint = there.endpoint;
  CachedPeer foreign = cached(1, there.endpoint.ip, now);
  Hash256 other{};
  QVERIFY(net::sign_node_record(foreign.record, key_of(1), other).ok());
  const CachedPeer at_home = cached(1, platform::IpAddress::v4(192, 168, 0, 1), now);
  Host& victim = village.add({}, false, true, [&](Host&, MemberOptions& options) {
    options.cached = {altered, foreign, at_home, cached(60, there.endpoint.ip, now)};
  });
  QCOMPARE(victim.member->good_peers().size(), std::size_t(1));  // the last: its signature holds
  village.world.run_for(10 * minute);
  QCOMPARE(victim.member->view().sources.size(), std::size_t(1));
  QVERIFY(!victim.member->view().sources[0].connected);
  QCOMPARE(victim.member->view().table, std::size_t(0));
}

void TestMember::a_long_cache_of_dead_peers_is_gone_through() {
  Village village;
  Host& tracker = village.add({}, true);
  Host& living = village.add({&tracker});
  QVERIFY(village.run_until([&] { return living.member->view().reachable; }, minute));
  const WallTime now = village.world.clock().wall_now();
  Host& late = village.add({}, false, true, [&](Host&, MemberOptions& options) {
    for (std::uint8_t i = 0; i < max_cached_peers - 1; ++i)
      options.cached.push_back(
          cached(static_cast<std::uint8_t>(100 + i), platform::IpAddress::v4(12, i, 0, 1), now));
    options.cached.push_back(cached(2, living.endpoint.ip, now));
  });
  QCOMPARE(late.member->view().sources.size(), std::size_t(4));
  // 16 rounds of at most 5 s and a pause of at most 1.5 s.
  QVERIFY(village.run_until([&] { return late.member->view().reachable; }, 3 * minute));
  QCOMPARE(late.member->good_peers().size(), max_cached_peers);
  QVERIFY(village.run_until([&] { return late.member->good_peers()[0].record.id() == living.id; }, minute));
}

void TestMember::names_are_looked_up_until_they_are_known() {
  Village village;
  Host& tracker = village.add({}, true);
  Names* names = nullptr;
  Host& node = village.add({}, false, true, [&](Host& host, MemberOptions& options) {
    host.names = std::make_unique<Names>(
        host.executor,
        std::map<std::string, platform::Endpoint>{{"tracker.example.org:9000", tracker.endpoint}}, 5);
    names = host.names.get();
    options.sources = {{{}, tracker.id, "tracker.example.org:9000"}, {{}, {}, "nobody.example.org:9000"}};
  });
  const auto waits = [&] {
    return node.member->view().sources[0].state.find("no answer now; tried again in") != std::string::npos;
  };
  QVERIFY(village.run_until([&] { return names->asked >= 3 && waits(); }, minute));
  const MemberView waiting = node.member->view();
  QVERIFY(!waiting.sources[0].connected);
  QCOMPARE(waiting.sources[0].name, std::string("tracker.example.org:9000"));
  QVERIFY(village.run_until([&] { return node.member->view().sources[0].connected; }, 5 * minute));
  QVERIFY(village.run_until([&] { return tracker.member->statistics().nodes == 1; }, minute));
  // The other one is asked for on and on, and ever more rarely.
  const int before = names->asked;
  village.world.run_for(std::chrono::hours(1));
  QVERIFY(names->asked > before + 30);
  QVERIFY(names->asked < before + 130);
  QVERIFY(!node.member->view().sources[1].connected);
}

void TestMember::records_name_the_wallet() {
  Village village;
  Host& tracker = village.add({}, true);
  const WallTime now = village.world.clock().wall_now();
  const crypto::KeyPair wallet = key_of(200);
  Host& worker = village.add({&tracker}, false, true, [&](Host& host, MemberOptions& options) {
    options.facts.delegation =
        crypto::delegate(wallet, host.key->public_key(), network_id(), now + std::chrono::hours(2), 1);
  });
  Host& other = village.add({&tracker});
  const auto seen = [&]() -> const net::NodeRecord* {
    return other.member->book().find(worker.id, village.world.clock().wall_now());
  };
  QVERIFY(village.run_until([&] { return seen() != nullptr; }, 5 * minute));
  QVERIFY(seen()->delegation && seen()->delegation->wallet_key == wallet.public_key());
  // It ends: the node stays in the network, without a wallet.
  village.world.run_for(std::chrono::hours(4));
  QVERIFY(village.run_until([&] { return seen() != nullptr; }, 10 * minute));
  QVERIFY(!seen()->delegation);
}

void TestMember::a_foreign_delegation_is_refused() {
  Village village;
  Host& tracker = village.add({}, true);
  Host& honest = village.add({&tracker});
  const WallTime now = village.world.clock().wall_now();
  // A wallet's word for another node, used by this one.
  Host& thief = village.add({&tracker}, false, true, [&](Host&, MemberOptions& options) {
    options.facts.delegation = crypto::delegate(key_of(200), honest.key->public_key(), network_id(),
                                                now + std::chrono::hours(100), 1);
  });
  village.world.run_for(10 * minute);
  QCOMPARE(tracker.member->statistics().nodes, std::size_t(1));
  QVERIFY(honest.member->book().find(thief.id, village.world.clock().wall_now()) == nullptr);
  QVERIFY(!thief.member->view().sources[0].connected);
}

void TestMember::who_is_found_elsewhere_is_somebody_to_begin_with() {
  Village village;
  Host& a = village.add({});
  Host& b = village.add({});
  village.world.run_for(minute);
  QVERIFY(a.member->alone() && b.member->alone());
  // As a rendezvous names them: the own address among them.
  a.member->suggest({a.endpoint, a.id});
  a.member->suggest({b.endpoint, b.id});
  a.member->suggest({b.endpoint, b.id});
  b.member->suggest({a.endpoint, a.id});
  QVERIFY(village.run_until([&] { return a.member->book().size() == 1 && b.member->book().size() == 1; },
                            3 * minute));
  QVERIFY(!a.member->alone());
  village.world.run_for(minute);
  int connected = 0;
  for (const SourceView& source : a.member->view().sources) connected += source.connected ? 1 : 0;
  QCOMPARE(connected, 1);
}

void TestMember::dead_places_that_are_found_cost_little() {
  Village village;
  Host& a = village.add({});
  const auto dead = [](std::uint8_t number) {
    return platform::Endpoint{platform::IpAddress::v4(99, 0, 0, number), 9000};
  };
  for (std::uint8_t i = 1; i <= 200; ++i) a.member->suggest({dead(i), net::NodeId{i}});
  QCOMPARE(a.member->view().sources.size(), std::size_t{8});
  village.world.run_for(10 * minute);
  for (const SourceView& source : a.member->view().sources)
    QVERIFY2(source.state.find("not tried again") != std::string::npos, source.state.c_str());
  // Their places are free for others.
  Host& b = village.add({});
  village.world.run_for(minute);
  a.member->suggest({dead(77), net::NodeId{77}});
  a.member->suggest({b.endpoint, b.id});
  b.member->suggest({a.endpoint, a.id});
  QVERIFY(village.run_until([&] { return a.member->book().size() == 1; }, 3 * minute));
  QCOMPARE(a.member->view().sources.size(), std::size_t{8});
}

QTEST_GUILESS_MAIN(TestMember)
#include "test_member.moc"
