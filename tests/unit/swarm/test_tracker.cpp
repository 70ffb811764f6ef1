// The tracker's table and the messages of the swarm.
#include <QtTest>
#include <set>

#include "core/swarm/messages.h"
#include "core/swarm/tracker.h"
#include "tests/support/test_main.h"

using namespace neuroshard;
using namespace neuroshard::swarm;

namespace {

const WallTime start{std::chrono::milliseconds(1'800'000'000'000)};
constexpr auto second = std::chrono::seconds(1);

Hash256 network() {
  Hash256 id{};
  id.fill(7);
  return id;
}

crypto::KeyPair key(std::uint16_t number) {
  Hash256 seed{};
  seed[0] = static_cast<std::uint8_t>(number);
  seed[1] = static_cast<std::uint8_t>(number >> 8);
  seed[2] = 1;
  return crypto::KeyPair::from_seed(seed);
}

struct Node {
  crypto::KeyPair keys;
  net::Caller caller;
  net::NodeRecord record;
};

Node node(std::uint16_t number, const platform::IpAddress& ip, std::uint64_t sequence = 1) {
  Node n{key(number), {}, {}};
  n.caller = {crypto::node_id(n.keys.public_key()), {ip, 40'000}};
  n.record.sequence = sequence;
  n.record.made = start;
  n.record.expires = start + std::chrono::hours(1);
  n.record.memory_bytes = 1000;
  n.record.endpoints = {{net::Reach::Direct, {ip, 9000}}};
  if (!net::sign_node_record(n.record, n.keys, network()).ok()) qFatal("not signed");
  return n;
}

platform::IpAddress ip(int group, int host) {
  return platform::IpAddress::v4(11, 0, static_cast<std::uint8_t>(group), static_cast<std::uint8_t>(host));
}

}  // namespace

class TestTracker : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void a_node_is_known_while_it_is_heard();
  void what_is_not_taken();
  void samples_are_bounded_random_and_diverse();
  void one_range_of_addresses_has_its_share();
  void statistics_do_not_overflow();
  void messages_come_back();
  void any_bytes_are_safe();
};

void TestTracker::a_node_is_known_while_it_is_heard() {
  Tracker tracker(network(), false, 1);
  const Node a = node(1, ip(1, 1));
  QVERIFY(tracker.enter(a.caller, a.record, start).ok());
  const net::NodeId other{};
  QCOMPARE(tracker.sample(other, 50, start + 29 * second).size(), std::size_t(1));
  QVERIFY(tracker.heartbeat(a.caller, start + 29 * second).ok());
  QCOMPARE(tracker.sample(other, 50, start + 58 * second).size(), std::size_t(1));
  QVERIFY(tracker.sample(a.caller.id, 50, start + 58 * second).empty());  // not the asker
  QVERIFY(tracker.sample(other, 50, start + 60 * second).empty());
  QCOMPARE(tracker.heartbeat(a.caller, start + 60 * second).error().code, ErrorCode::NotFound);
  QVERIFY(tracker.enter(a.caller, a.record, start + 61 * second).ok());
}

void TestTracker::what_is_not_taken() {
  Tracker tracker(network(), false, 1);
  const Node a = node(1, ip(1, 1)), b = node(2, ip(2, 1));
  QCOMPARE(tracker.enter(b.caller, a.record, start).error().code, ErrorCode::Denied);  // somebody else's
  Node elsewhere = node(1, ip(1, 1));
  elsewhere.caller.endpoint.ip = ip(9, 9);
  QCOMPARE(tracker.enter(elsewhere.caller, elsewhere.record, start).error().code, ErrorCode::Denied);
  Node at_home = node(3, platform::IpAddress::v4(192, 168, 1, 2));
  QCOMPARE(tracker.enter(at_home.caller, at_home.record, start).error().code, ErrorCode::Denied);
  // A relay and a TURN server are elsewhere than their node.
  const auto turned = [](const platform::IpAddress& server) {
    Node n = node(6, ip(6, 6));
    n.record.endpoints = {{net::Reach::Turn, {server, 50'000}}, {net::Reach::Relayed, {ip(7, 7), 9000}}};
    if (!net::sign_node_record(n.record, n.keys, network()).ok()) qFatal("not signed");
    return n;
  };
  const Node away = turned(ip(8, 8)), inside = turned(platform::IpAddress::v4(10, 0, 0, 1));
  QVERIFY(tracker.enter(away.caller, away.record, start).ok());
  QCOMPARE(tracker.enter(inside.caller, inside.record, start).error().code, ErrorCode::Denied);
  Tracker lan(network(), true, 1);
  QVERIFY(lan.enter(at_home.caller, at_home.record, start).ok());
  Node altered = node(4, ip(4, 4));
  altered.record.memory_bytes += 1;
  QCOMPARE(tracker.enter(altered.caller, altered.record, start).error().code, ErrorCode::Denied);
  const Node second_one = node(5, ip(5, 5), 2), first_one = node(5, ip(5, 5), 1);
  QVERIFY(tracker.enter(second_one.caller, second_one.record, start).ok());
  QCOMPARE(tracker.enter(first_one.caller, first_one.record, start).error().code,
           ErrorCode::Denied);  // a replay
  QCOMPARE(tracker.enter(a.caller, a.record, start + std::chrono::hours(1)).error().code, ErrorCode::Denied);
}

void TestTracker::samples_are_bounded_random_and_diverse() {
  Tracker tracker(network(), false, 1);
  std::uint16_t number = 0;
  for (int i = 0; i < 60; ++i) {  // a crowd of one range
    const Node n = node(++number, ip(1, i + 1));
    QVERIFY(tracker.enter(n.caller, n.record, start).ok());
  }
  for (int i = 0; i < 30; ++i) {
    const Node n = node(++number, ip(10 + i, 1));
    QVERIFY(tracker.enter(n.caller, n.record, start).ok());
  }
  const auto all = tracker.sample({}, 255, start);
  QCOMPARE(all.size(), std::size_t(50));
  std::set<std::uint64_t> groups;
  for (const auto* record : tracker.sample({}, 31, start))
    groups.insert(platform::prefix_group(record->endpoints[0].endpoint.ip));
  QCOMPARE(groups.size(), std::size_t(31));  // one of the crowd, and everybody else
  std::set<net::NodeId> seen;
  for (int i = 0; i < 40; ++i) seen.insert(tracker.sample({}, 1, start).front()->id());
  QVERIFY(seen.size() > 10);
}

void TestTracker::one_range_of_addresses_has_its_share() {
  Tracker tracker(network(), false, 1);
  int entered = 0;
  for (std::uint16_t i = 1; i <= 100; ++i) {
    const Node n = node(i, ip(1, i));
    entered += tracker.enter(n.caller, n.record, start).ok();
  }
  QCOMPARE(entered, 64);
  const Node other = node(500, ip(2, 1));
  QVERIFY(tracker.enter(other.caller, other.record, start).ok());
}

void TestTracker::statistics_do_not_overflow() {
  Tracker tracker(network(), false, 1);
  for (std::uint16_t i = 1; i <= 3; ++i) {
    Node n = node(i, ip(i, 1));
    n.record.memory_bytes = ~std::uint64_t{0} / 2;
    if (i == 3) n.record.endpoints.clear();
    QVERIFY(net::sign_node_record(n.record, n.keys, network()).ok());
    QVERIFY(tracker.enter(n.caller, n.record, start).ok());
  }
  const TrackerStatistics sum = tracker.statistics(start);
  QCOMPARE(sum.nodes, std::size_t(3));
  QCOMPARE(sum.reachable, std::size_t(2));
  QCOMPARE(sum.memory_bytes, ~std::uint64_t{0});
}

void TestTracker::messages_come_back() {
  const Node a = node(1, ip(1, 1)), b = node(2, ip(2, 1));
  const auto records = decode_records(encode_records({&a.record, &b.record})).value();
  QCOMPARE(records.size(), std::size_t(2));
  QVERIFY(records[1].id() == b.caller.id);
  QVERIFY(net::check_node_record(records[0], network(), start).ok());
  QCOMPARE(decode_count(encode_count(7)).value(), std::size_t(7));
  QCOMPARE(decode_count(Bytes{255}).value(), max_records);
  const PeersRequest guest = decode_peers_request(encode_peers_request(9, nullptr)).value();
  QVERIFY(guest.count == 9 && !guest.own);
  const PeersRequest known = decode_peers_request(encode_peers_request(7, &a.record)).value();
  QVERIFY(known.count == 7 && known.own && known.own->id() == a.caller.id);
  QCOMPARE(decode_peers_request(Bytes{}).error().code, ErrorCode::Corrupt);
  QCOMPARE(decode_peers_request(Bytes{7, 1}).error().code, ErrorCode::Corrupt);
  QCOMPARE(decode_port(encode_port(9000)).value(), std::uint16_t(9000));
  const auto answer = decode_dial_back(encode_dial_back({false, "no\nway"})).value();
  QVERIFY(!answer.reached);
  QCOMPARE(answer.why, std::string("no way"));
}

void TestTracker::any_bytes_are_safe() {
  const Node a = node(1, ip(1, 1));
  const Bytes good = encode_records({&a.record});
  for (std::size_t size = 0; size < good.size(); ++size)
    QVERIFY(!decode_records(ByteSpan(good).first(size)).ok());
  Bytes more = good;
  more.push_back(0);
  QVERIFY(!decode_records(more).ok());
  QVERIFY(!decode_records(Bytes{51}).ok());
  QVERIFY(!decode_port(Bytes{0, 0}).ok());
  QVERIFY(!decode_dial_back(Bytes{2}).ok());
  QVERIFY(!decode_dial_back(Bytes(500, 'x')).ok());
}

NS_TEST(TestTracker)
#include "test_tracker.moc"
