// Members of a network on the simulated world: how they find each other, with trackers that work, die or lie,
// and how they learn whether they are reached from outside.
#include <QtTest>

#include "core/base/check.h"
#include "core/dht/messages.h"
#include "tests/support/keys.h"
#include "tests/support/test_main.h"
#include "tests/support/village.h"

using namespace neuroshard;
using namespace neuroshard::swarm;
using namespace neuroshard::test;  // NOLINT

class TestMember : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void nodes_find_each_other_by_a_tracker();
  void the_network_outlives_its_tracker();
  void a_dead_tracker_is_tried_until_it_lives();
  void a_node_that_does_not_listen_is_a_client();
  void records_travel_by_the_table();
  void a_record_is_renewed_when_wall_time_jumps();
  void with_loss();
  void who_sends_nonsense_is_banned();
  void who_does_not_wait_is_banned();
  void good_peers_are_enough_for_the_next_start();
  void a_forged_cache_leads_nowhere();
  void a_long_cache_of_dead_peers_is_gone_through();
  void names_are_looked_up_until_they_are_known();
  void of_a_name_the_addresses_where_the_node_listens_come_first();
  void an_address_where_the_node_does_not_listen_counts_only_alone();
  void another_first_peer_of_a_group_goes_on_to_dial_back();
  void records_name_the_wallet();
  void records_say_what_a_node_gives();
  void a_relay_without_data_is_not_offered();
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
  // A node that can be dialled got a new table, and its announcements go there.
  QCOMPARE(quiet.member->table_number(), std::uint64_t{1});
  QVERIFY(a.member->table_number() > 1);
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

// After a suspend or a change of the clock, the monotonic time says that the record is young.
void TestMember::a_record_is_renewed_when_wall_time_jumps() {
  Village village;
  Host& tracker = village.add({}, true);
  village.add({&tracker});
  const auto registered = [&] { return tracker.member->statistics().nodes == 1; };
  QVERIFY(village.run_until(registered, minute));
  village.world.jump_wall(std::chrono::hours(2));
  village.world.run_for(minute);
  QVERIFY(registered());
  // Back, and the tracker has to be told anew.
  village.world.jump_wall(-std::chrono::hours(2));
  MemberOptions again = Village::listening();
  again.tracker = true;
  village.restart(tracker, again, 77);
  village.world.run_for(minute);
  QVERIFY(registered());
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

using neuroshard::test::key_of;

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
        Names::Known{{"tracker.example.org:9000", std::vector<platform::Endpoint>{tracker.endpoint}}}, 5);
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

namespace {

const platform::Endpoint of_v6{platform::parse_ip("2600::7").value(), 9000};

}  // namespace

void TestMember::of_a_name_the_addresses_where_the_node_listens_come_first() {
  Village village;
  Host& tracker = village.add({}, true);
  Front front(tracker, [](net::Method method, Expected<Bytes> answer, const net::Respond& respond) {
    if (method != net::Method::TrackerHeartbeat) return respond(std::move(answer));
    respond(make_error(ErrorCode::Internal, "it ends its connections"));
  });
  const Names* names = nullptr;
  const Host& node = village.add({}, false, true, [&](Host& host, MemberOptions& options) {
    const std::string name = "tracker.example.org:9000";
    const std::vector<platform::Endpoint> places{of_v6, tracker.endpoint};
    host.names = std::make_unique<Names>(host.executor, Names::Known{{name, places}}, 0);
    names = host.names.get();
    options.sources = {{{}, tracker.id, name}};
    options.listens_at = host.endpoint.ip;
  });
  const auto source = [&] { return node.member->view().sources[0]; };
  QVERIFY(village.run_until([&] { return source().connected; }, second * 4));  // before a dial can time out
  for (int i = 0; i < 300; ++i) {
    village.world.run_for(second);
    QVERIFY2(source().endpoint == tracker.endpoint, source().state.c_str());
  }
  QVERIFY2(names->asked > 10, qPrintable(QString::number(names->asked)));  // it connected as often
  village.power_off(tracker);
  QVERIFY(village.run_until([&] { return source().endpoint == of_v6; }, minute));
}

void TestMember::an_address_where_the_node_does_not_listen_counts_only_alone() {
  Village village;
  Host& six = village.add({}, true);
  Host& four = village.add({}, true);
  Front front(six, [](net::Method method, Expected<Bytes> answer, const net::Respond& respond) {
    if (method != net::Method::AddressEcho) return respond(std::move(answer));
    respond(dht::encode_endpoint(of_v6));
  });
  village.power_off(four);
  const Host& node = village.add({&six, &four}, false, true, [](Host& host, MemberOptions& options) {
    options.listens_at = host.endpoint.ip;
  });
  const auto is_seen_at = [&](const platform::Endpoint& where) {
    const auto at = node.member->view().seen_at;
    return at && at->ip == where.ip;
  };
  QVERIFY(village.run_until([&] { return is_seen_at(of_v6); }, minute));
  village.power_on(four);
  QVERIFY(village.run_until([&] { return node.member->advertised() == node.endpoint; }, 5 * minute));
  // The only one that is there again sees the node elsewhere.
  village.power_off(four);
  village.power_off(six);
  village.world.run_for(minute);
  village.power_on(six);
  QVERIFY(village.run_until([&] { return node.member->view().sources[0].connected; }, 5 * minute));
  QVERIFY(village.run_until([&] { return is_seen_at(of_v6) && !node.member->advertised(); }, 5 * minute));
}

// Two trackers of one address group are one observer.
void TestMember::another_first_peer_of_a_group_goes_on_to_dial_back() {
  Village village;
  village.place = [](std::uint8_t number) {
    const auto group = static_cast<std::uint8_t>(number == 3 ? 2 : 1);
    return platform::Endpoint{platform::IpAddress::v4(11, group, 0, number), 9000};
  };
  Host& leaving = village.add({}, true);
  Host& staying = village.add({}, true);
  int dialled_back = 0;
  Front front(staying, [&](net::Method method, Expected<Bytes> answer, const net::Respond& respond) {
    if (method == net::Method::DialBack) ++dialled_back;
    respond(std::move(answer));
  });
  const Host& node = village.add({&leaving, &staying});
  const auto view = [&] { return node.member->view(); };
  QVERIFY(village.run_until(
      [&] { return view().reachable && view().sources[0].connected && view().sources[1].connected; },
      minute));
  village.power_off(leaving);
  QVERIFY(village.run_until([&] { return !view().sources[0].connected; }, minute));
  dialled_back = 0;
  village.world.run_for(25 * minute);
  QVERIFY2(dialled_back >= 2, qPrintable(QString::number(dialled_back)));
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

void TestMember::records_say_what_a_node_gives() {
  Village village;
  Host& tracker = village.add({}, true);
  Host& worker = village.add({&tracker});
  Host& other = village.add({&tracker});
  const auto seen = [&] { return other.member->book().find(worker.id, village.world.clock().wall_now()); };
  QVERIFY(village.run_until([&] { return seen() != nullptr; }, 5 * minute));
  QCOMPARE(seen()->tokens_per_second, 0u);
  Capacity capacity{8'000'000'000, 1000, {{net::SlotKind::Embed, 0, 0}, {net::SlotKind::Head, 0, 0}}};
  worker.member->set_capacity(capacity);
  QVERIFY(village.run_until([&] { return seen() && seen()->tokens_per_second == 1000; }, 5 * minute));
  QVERIFY(seen()->memory_bytes == capacity.memory_bytes && seen()->slots == capacity.slots);
  // A small change is not announced.
  const std::uint64_t sequence = seen()->sequence;
  capacity.tokens_per_second = 1050;
  worker.member->set_capacity(capacity);
  village.world.run_for(5 * minute);
  QCOMPARE(seen()->sequence, sequence);
  capacity.tokens_per_second = 500;
  worker.member->set_capacity(capacity);
  QVERIFY(village.run_until([&] { return seen()->tokens_per_second == 500; }, 5 * minute));
}

void TestMember::a_relay_without_data_is_not_offered() {
  SystemClock clock;  // the relay has a thread of its own
  crypto::SystemEntropy entropy;
  bool has_data = true;
  Village village;
  Host& tracker = village.add({}, true);
  const Host& node = village.add({&tracker}, false, true, [&](Host& host, MemberOptions&) {
    host.relay = nat::RelayRole::start({}, clock, entropy).value();
    host.has_relay_data = [&has_data] { return has_data; };
  });
  const auto offered = [&] { return node.transport->hello().offers(net::Feature::Relay); };
  const Host& other = village.add({&tracker});
  const auto recorded = [&] {  // by the record that others have
    const auto* record = other.member->book().find(node.id, village.world.clock().wall_now());
    return record != nullptr && (record->features & static_cast<std::uint64_t>(net::Feature::Relay)) != 0;
  };
  QVERIFY(!offered());
  QVERIFY(village.run_until([&] { return offered() && recorded(); }, 5 * minute));
  QVERIFY(node.member->view().relaying);
  has_data = false;
  QVERIFY(village.run_until([&] { return !offered() && !recorded(); }, 5 * minute));
  QVERIFY(!node.member->view().relaying);
  has_data = true;
  QVERIFY(village.run_until([&] { return offered() && recorded(); }, 5 * minute));
  QVERIFY(node.member->view().relaying);
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
  const std::string state = thief.member->view().sources[0].state;
  QVERIFY2(state.find("does not register this one") != std::string::npos, state.c_str());
  QVERIFY(tracker.member->view().forged >= 1);  // told to who looks
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
    return platform::Endpoint{platform::IpAddress::v4(99, 0, number, 1), 9000};
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

NS_TEST(TestMember)
#include "test_member.moc"
