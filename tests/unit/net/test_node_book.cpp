// A book of nodes that strangers fill keeps what it should: records come by the thousand, from few addresses.
#include <QtTest>

#include "core/net/node_book.h"
#include "tests/support/keys.h"
#include "tests/support/test_main.h"
#include "tests/support/time.h"

using namespace neuroshard;
using namespace neuroshard::net;
using namespace neuroshard::test;  // NOLINT
using platform::IpAddress;

namespace {

const WallTime now = WallTime(std::chrono::hours(500'000));

platform::Endpoint at(std::uint8_t a, std::uint8_t b, std::uint8_t c, std::uint16_t port = 9000) {
  return {IpAddress::v4(40, a, b, c), port};
}

NodeRecord record_of(std::uint16_t number, const platform::Endpoint& endpoint, Duration life = hour,
                     std::uint64_t sequence = 1) {
  NodeRecord record;
  record.sequence = sequence;
  record.made = now;
  record.expires = now + std::chrono::duration_cast<std::chrono::milliseconds>(life);
  record.endpoints = {{Reach::Direct, endpoint}};
  record.program = "test";
  if (!sign_node_record(record, key_numbered(number), Hash256{}).ok()) qFatal("not signed");
  return record;
}

Caller informant(std::uint16_t number, const platform::Endpoint& endpoint) {
  return {crypto::node_id(key_numbered(number).public_key()), endpoint};
}

NodeBookLimits small_limits() {
  NodeBookLimits limits;
  limits.most = 12;
  limits.per_group = 6;
  limits.per_informant = 4;
  return limits;
}

}  // namespace

class TestNodeBook : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void a_flood_leaves_members_and_reached_nodes_alone();
  void an_informant_names_only_so_many();
  void an_address_group_has_only_so_many();
  void callers_behind_relays_share_a_limit();
  void a_long_life_is_cut();
  void a_moved_node_is_proven_anew();
  void only_what_was_reached_is_told();
  void reached_addresses_come_first();
  void a_household_behind_one_address_is_kept();
  void one_lan_is_not_counted();
  void a_choice_spreads_over_address_groups();
};

void TestNodeBook::a_flood_leaves_members_and_reached_nodes_alone() {
  NodeBookLimits limits = small_limits();
  limits.per_informant = 1000;
  NodeBook book(Hash256{}, false, limits);
  const NodeRecord member = record_of(1, at(1, 1, 1)), reached = record_of(2, at(1, 2, 1)),
                   merely_named = record_of(3, at(1, 3, 1));
  book.set_members([&](const NodeId& id) { return id == member.id(); });
  for (const NodeRecord* record : {&member, &reached, &merely_named})
    QVERIFY(book.put(*record, now, informant(9, at(9, 9, 9))).ok());
  book.reached(reached.id(), at(1, 2, 1), now);
  // One after the other, each at an address of its own that it calls from, with the longest life.
  for (std::uint16_t i = 0; i < 100; ++i) {
    const platform::Endpoint own = at(2, static_cast<std::uint8_t>(i), 1);
    (void)book.put(record_of(100 + i, own, 24 * hour), now, informant(100 + i, own));
  }
  QCOMPARE(book.size(), limits.most);
  QVERIFY(book.find(member.id(), now) != nullptr);
  QVERIFY(book.find(reached.id(), now) != nullptr);
  QVERIFY(book.find(merely_named.id(), now) == nullptr);  // an introduction counts for more
  // A member that comes late finds a place.
  const NodeRecord late = record_of(4, at(1, 4, 1));
  book.set_members([&](const NodeId& id) { return id == late.id() || id == member.id(); });
  QVERIFY(book.put(late, now, informant(9, at(9, 9, 9))).ok());
  QVERIFY(book.find(late.id(), now) != nullptr);
}

void TestNodeBook::an_informant_names_only_so_many() {
  NodeBook book(Hash256{}, false, small_limits());
  const auto name = [&](std::uint16_t number, std::uint8_t informant_address) {
    const platform::Endpoint own = at(3, static_cast<std::uint8_t>(number), 1);
    return book.put(record_of(number, own), now, informant(number + 500, at(5, 5, informant_address)));
  };
  // Different ids and addresses of one group are one informant.
  for (std::uint16_t i = 0; i < 4; ++i) QVERIFY(name(i, static_cast<std::uint8_t>(i)).ok());
  QCOMPARE(name(4, 4).error().code, ErrorCode::Exhausted);
  // A node that was reached counts no longer.
  book.reached(record_of(0, at(3, 0, 1)).id(), at(3, 0, 1), now);
  QVERIFY(name(4, 4).ok());
  QCOMPARE(name(5, 4).error().code, ErrorCode::Exhausted);
  // A newer record of a known node needs no place.
  QVERIFY(book.put(record_of(4, at(3, 4, 1), hour, 2), now, informant(9, at(5, 5, 1))).ok());
}

void TestNodeBook::an_address_group_has_only_so_many() {
  NodeBook book(Hash256{}, false, small_limits());
  // An attacker elsewhere names six nodes in a group that it does not have.
  for (std::uint16_t i = 0; i < 6; ++i)
    QVERIFY(book.put(record_of(i, at(4, 4, static_cast<std::uint8_t>(i))), now,
                     informant(500, at(6, static_cast<std::uint8_t>(i), 1)))
                .ok());
  QCOMPARE(book.put(record_of(7, at(4, 4, 7)), now, informant(500, at(6, 7, 1))).error().code,
           ErrorCode::Exhausted);
  // A node that calls from there takes the place of one that was named only.
  QVERIFY(book.put(record_of(8, at(4, 4, 8)), now, informant(8, at(4, 4, 8, 33'000))).ok());
  QCOMPARE(book.size(), std::size_t{6});
  QVERIFY(book.find(record_of(8, at(4, 4, 8)).id(), now) != nullptr);
  // A record that moves into the full group is refused, and the former one stays.
  QVERIFY(book.put(record_of(9, at(4, 5, 9)), now, informant(500, at(6, 8, 1))).ok());
  QVERIFY(!book.put(record_of(9, at(4, 4, 9), hour, 2), now, informant(500, at(6, 8, 1))).ok());
  QCOMPARE(book.find(record_of(9, at(4, 5, 9)).id(), now)->sequence, std::uint64_t{1});
}

void TestNodeBook::callers_behind_relays_share_a_limit() {
  NodeBook book(Hash256{}, false, small_limits());
  const platform::Endpoint pump{IpAddress::v4(127, 0, 0, 1), 40'000};
  std::size_t taken = 0;
  for (std::uint16_t i = 0; i < 20; ++i)
    taken += book.put(record_of(i, at(7, static_cast<std::uint8_t>(i), 1)), now, informant(i, pump)).ok();
  QCOMPARE(taken, std::size_t{4});
}

void TestNodeBook::a_long_life_is_cut() {
  NodeBook book(Hash256{});
  const NodeRecord record = record_of(1, at(1, 1, 1), 24 * hour);
  QVERIFY(book.put(record, now, informant(9, at(9, 9, 9))).ok());
  QVERIFY(book.find(record.id(), now + std::chrono::minutes(119)) != nullptr);
  QVERIFY(book.find(record.id(), now + std::chrono::minutes(121)) == nullptr);
  book.reached(record.id(), at(1, 1, 1), now + std::chrono::minutes(60));
  QVERIFY(book.find(record.id(), now + std::chrono::minutes(121)) != nullptr);
  // Heard again, it lives no longer.
  QVERIFY(book.put(record, now + std::chrono::minutes(100), informant(9, at(9, 9, 9))).ok());
  QVERIFY(book.find(record.id(), now + std::chrono::minutes(181)) == nullptr);
}

void TestNodeBook::a_moved_node_is_proven_anew() {
  NodeBook book(Hash256{});
  const NodeRecord here = record_of(1, at(1, 1, 1));
  QVERIFY(book.put(here, now).ok());
  book.reached(here.id(), at(8, 8, 8), now);  // not what the record names
  QVERIFY(!book.is_proven(here.id(), at(8, 8, 8)));
  book.reached(here.id(), at(1, 1, 1), now);
  QVERIFY(book.is_proven(here.id(), at(1, 1, 1)));
  QVERIFY(book.put(record_of(1, at(1, 1, 1), hour, 2), now).ok());
  QVERIFY(book.is_proven(here.id(), at(1, 1, 1)));
  QVERIFY(book.put(record_of(1, at(2, 2, 2), hour, 3), now).ok());
  QVERIFY(!book.is_proven(here.id(), at(1, 1, 1)));
  QVERIFY(!book.is_proven(here.id(), at(2, 2, 2)));
  QVERIFY(book.proven(now).empty());
}

void TestNodeBook::only_what_was_reached_is_told() {
  NodeBook book(Hash256{});
  NodeRecord two = record_of(1, at(1, 1, 1));
  two.endpoints.push_back({Reach::Direct, at(2, 2, 2)});  // may be a victim's
  QVERIFY(sign_node_record(two, key_numbered(1), Hash256{}).ok());
  NodeRecord relayed = record_of(2, at(3, 3, 3));
  relayed.endpoints = {{Reach::Turn, at(4, 4, 4)}, {Reach::Relayed, at(3, 3, 3)}};
  QVERIFY(sign_node_record(relayed, key_numbered(2), Hash256{}).ok());
  QVERIFY(book.put(two, now).ok() && book.put(relayed, now).ok());
  QVERIFY(book.proven(now).empty());
  book.reached(two.id(), at(1, 1, 1), now);
  book.reached(relayed.id(), at(3, 3, 3), now);
  QCOMPARE(book.proven(now).size(), std::size_t{1});
  QVERIFY(book.proven(now).front()->id() == relayed.id());
  book.reached(two.id(), at(2, 2, 2), now);
  QCOMPARE(book.proven(now).size(), std::size_t{2});
}

void TestNodeBook::reached_addresses_come_first() {
  NodeBook book(Hash256{});
  for (std::uint16_t i = 1; i <= 9; ++i)
    QVERIFY(book.put(record_of(i, at(1, static_cast<std::uint8_t>(i), 1)), now).ok());
  NodeRecord relayed = record_of(10, at(2, 2, 2));
  relayed.endpoints = {{Reach::Relayed, at(2, 2, 2)}};
  QVERIFY(sign_node_record(relayed, key_numbered(10), Hash256{}).ok());
  QVERIFY(book.put(relayed, now).ok());
  const auto reach = [&book](std::uint8_t i) {
    book.reached(record_of(i, at(1, i, 1)).id(), at(1, i, 1), now);
  };
  reach(7);
  reach(4);
  const std::vector<IpAddress> addresses = book.direct_addresses(now);
  QCOMPARE(addresses.size(), std::size_t{9});
  const auto is_first = [&addresses](std::uint8_t i) {
    return addresses[0] == at(1, i, 1).ip || addresses[1] == at(1, i, 1).ip;
  };
  QVERIFY(is_first(7) && is_first(4));
  QVERIFY(book.direct_addresses(now + std::chrono::hours(3)).empty());
}

void TestNodeBook::a_household_behind_one_address_is_kept() {
  NodeBook book(Hash256{});
  for (std::uint16_t i = 0; i < 20; ++i) {
    const platform::Endpoint own = at(1, 1, 1, static_cast<std::uint16_t>(9000 + i));
    QVERIFY(book.put(record_of(i, own), now, informant(i, own)).ok());
  }
  QCOMPARE(book.all(now).size(), std::size_t{20});
}

void TestNodeBook::one_lan_is_not_counted() {
  NodeBookLimits limits = small_limits();
  limits.most = 100;
  NodeBook book(Hash256{}, /*one_lan=*/true, limits);
  for (std::uint16_t i = 0; i < 50; ++i) {
    const platform::Endpoint own{IpAddress::v4(127, 0, 0, 1), static_cast<std::uint16_t>(9000 + i)};
    QVERIFY(book.put(record_of(i, own), now, informant(500, own)).ok());
  }
  QCOMPARE(book.size(), std::size_t{50});
}

void TestNodeBook::a_choice_spreads_over_address_groups() {
  std::vector<NodeRecord> records;
  for (std::uint8_t i = 0; i < 40; ++i) {
    NodeRecord record;
    record.node_key[0] = i;
    record.endpoints = {{Reach::Direct, i < 36 ? at(1, 1, i) : at(2, i, 1)}};  // 36 of one group
    records.push_back(record);
  }
  std::vector<const NodeRecord*> all;
  for (const NodeRecord& record : records) all.push_back(&record);
  Rng rng(3);
  const auto some = spread(all, 8, rng);
  QCOMPARE(some.size(), std::size_t{8});
  const auto rare = std::count_if(some.begin(), some.end(), [](const NodeRecord* record) {
    return record->endpoints.front().endpoint.ip.bytes[13] == 2;
  });
  QCOMPARE(rare, 4);
  QCOMPARE(spread(all, 100, rng).size(), std::size_t{40});
  // A large group is the first choice no more often than a small one.
  int large = 0;
  for (int i = 0; i < 1000; ++i)
    large += spread(all, 1, rng).front()->endpoints.front().endpoint.ip.bytes[13] == 1 ? 1 : 0;
  QVERIFY2(large > 140 && large < 260, qPrintable(QString::number(large)));  // one of five
}

NS_TEST(TestNodeBook)
#include "test_node_book.moc"
