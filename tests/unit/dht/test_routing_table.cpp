// The routing table: who gets in, who stays, and whom it names.
#include <QtTest>

#include <algorithm>
#include <cmath>
#include <set>

#include "core/base/rng.h"
#include "core/dht/routing_table.h"
#include "tests/support/test_main.h"

using namespace neuroshard;
using namespace neuroshard::dht;

namespace {

const MonotonicTime start = MonotonicTime(std::chrono::hours(1));

net::NodeId random_id(Rng& rng) {
  net::NodeId id;
  for (std::uint8_t& byte : id) byte = static_cast<std::uint8_t>(rng.below(256));
  return id;
}

// In bucket 0 of a table whose own id is all zero.
net::Contact far_contact(std::uint8_t number, std::uint8_t group) {
  net::Contact contact;
  contact.id[0] = 0x80;
  contact.id[31] = number;
  contact.endpoint = {platform::IpAddress::v4(40, 1, group, number), 9000};
  return contact;
}

// Twenty in every bucket.
TableLimits narrow_limits() {
  TableLimits limits;
  limits.farthest_bucket = limits.bucket;
  return limits;
}
const TableLimits narrow = narrow_limits();

}  // namespace

class TestRoutingTable : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void closest_agrees_with_sorting_everything();
  void who_was_only_heard_of_is_not_named();
  void a_live_contact_is_not_pushed_out();
  void a_dead_contact_is_not_named_and_makes_room();
  void one_address_range_gets_a_few_places();
  void a_contact_that_moved_is_verified_anew();
  void a_call_that_proves_nothing_changes_nothing();
  void what_is_due_is_checked_first();
  void the_farther_buckets_hold_more();
  void every_bucket_is_looked_up_in_turn();
  void the_size_of_the_network_is_estimated();
};

void TestRoutingTable::closest_agrees_with_sorting_everything() {
  Rng rng(3);
  const net::NodeId self = random_id(rng);
  RoutingTable table(self, {}, true);
  std::vector<net::Contact> in;
  for (int i = 0; i < 2000; ++i) {
    const net::Contact contact{random_id(rng), {platform::IpAddress::v4(10, 0, 0, 1), 9000}};
    const std::size_t before = table.size();
    table.answered(contact, start);
    if (table.size() > before) in.push_back(contact);
  }
  QVERIFY(in.size() > 150 && in.size() < 280);
  for (int i = 0; i < 200; ++i) {
    net::NodeId target = random_id(rng);  // anywhere, and as near to ourselves as can be
    if (i % 2 == 1) std::copy_n(self.begin(), i % 33, target.begin());
    std::sort(in.begin(), in.end(),
              [&](const net::Contact& a, const net::Contact& b) { return net::closer(target, a.id, b.id); });
    for (const std::size_t count : {std::size_t{1}, std::size_t{20}, in.size() + 5}) {
      const auto named = table.closest(target, count);
      QVERIFY(std::equal(named.begin(), named.end(), in.begin(),
                         in.begin() + static_cast<std::ptrdiff_t>(std::min(count, in.size()))));
    }
  }
}

void TestRoutingTable::who_was_only_heard_of_is_not_named() {
  RoutingTable table({}, {}, false);
  table.heard_of(far_contact(1, 1));
  QVERIFY(table.closest({}, 20).empty());
  QCOMPARE(table.to_check(5, start).size(), 1u);
  table.answered(far_contact(1, 1), start);
  QCOMPARE(table.closest({}, 20).size(), 1u);
  QVERIFY(table.to_check(5, start).empty());
}

void TestRoutingTable::a_live_contact_is_not_pushed_out() {
  RoutingTable table({}, narrow, false);
  for (std::uint8_t i = 0; i < 20; ++i) table.answered(far_contact(i, i), start);
  table.answered(far_contact(99, 99), start + std::chrono::hours(1));
  QCOMPARE(table.size(), 20u);
  const auto named = table.closest({}, 30);
  QVERIFY(std::find(named.begin(), named.end(), far_contact(99, 99)) == named.end());
}

void TestRoutingTable::a_dead_contact_is_not_named_and_makes_room() {
  RoutingTable table({}, narrow, false);
  for (std::uint8_t i = 0; i < 20; ++i) table.answered(far_contact(i, i), start);
  table.failed(far_contact(5, 5));
  QCOMPARE(table.closest({}, 30).size(), 19u);
  QCOMPARE(table.to_check(1, start).front().id, far_contact(5, 5).id);
  table.answered(far_contact(5, 5), start);  // it was only unlucky
  QCOMPARE(table.closest({}, 30).size(), 20u);
  table.failed(far_contact(6, 6));
  table.answered(far_contact(99, 99), start);
  const auto named = table.closest({}, 30);
  QCOMPARE(named.size(), 20u);
  QVERIFY(std::find(named.begin(), named.end(), far_contact(99, 99)) != named.end());
  for (int i = 0; i < 3; ++i) table.failed(far_contact(7, 7));
  QCOMPARE(table.size(), 19u);
}

void TestRoutingTable::one_address_range_gets_a_few_places() {
  RoutingTable table({}, {}, false), lan({}, {}, true);
  for (std::uint8_t i = 0; i < 20; ++i) {
    table.answered(far_contact(i, 1), start);
    lan.answered(far_contact(i, 1), start);
  }
  QCOMPARE(table.size(), 2u);
  QCOMPARE(lan.size(), 20u);
  // Over several buckets: ten in all.
  for (std::uint8_t bit = 1; bit < 20; ++bit) {
    for (std::uint8_t i = 0; i < 2; ++i) {
      net::Contact contact = far_contact(static_cast<std::uint8_t>(100 + i), 1);
      contact.id[0] = 0;
      contact.id[bit / 8] = static_cast<std::uint8_t>(0x80 >> (bit % 8));
      table.answered(contact, start);
    }
  }
  QCOMPARE(table.size(), 10u);
}

void TestRoutingTable::a_contact_that_moved_is_verified_anew() {
  RoutingTable table({}, {}, false);
  table.answered(far_contact(1, 1), start);
  net::Contact moved = far_contact(1, 2);
  table.heard_of(moved);  // a stranger's word moves nobody
  QCOMPARE(table.closest({}, 1).front().endpoint, far_contact(1, 1).endpoint);
  // Nor does an answer from there, as long as the contact answers where it is known.
  table.answered(moved, start);
  table.failed(moved);
  QCOMPARE(table.closest({}, 1).front().endpoint, far_contact(1, 1).endpoint);
  table.failed(far_contact(1, 1));
  table.answered(moved, start);
  QCOMPARE(table.closest({}, 1).front().endpoint, moved.endpoint);
  QCOMPARE(table.size(), 1u);
}

void TestRoutingTable::a_call_that_proves_nothing_changes_nothing() {
  RoutingTable table({}, {}, false);
  table.heard_of(far_contact(1, 1));
  table.passed_over(far_contact(1, 1), start);
  QCOMPARE(table.size(), 0u);
  QVERIFY(table.to_check(5, start).empty());  // others may name it again
  table.answered(far_contact(2, 2), start);
  table.failed(far_contact(2, 2));
  table.passed_over(far_contact(2, 2), start + std::chrono::minutes(1));
  QVERIFY(table.closest({}, 20).empty());
  table.answered(far_contact(2, 2), start);
  table.passed_over(far_contact(2, 2), start + std::chrono::minutes(1));
  QVERIFY(table.to_check(5, start + std::chrono::seconds(30)).empty());
  QCOMPARE(table.closest({}, 20).size(), 1u);
}

void TestRoutingTable::what_is_due_is_checked_first() {
  RoutingTable table({}, {}, false);
  table.answered(far_contact(1, 1), start);
  table.answered(far_contact(2, 2), start + std::chrono::minutes(1));
  table.answered(far_contact(3, 3), start + std::chrono::minutes(30));
  table.heard_of(far_contact(4, 4));
  table.failed(far_contact(3, 3));
  const auto due = table.to_check(4, start + std::chrono::minutes(10));
  QCOMPARE(due.size(), 4u);
  const std::uint8_t order[] = {3, 4, 1, 2};
  for (std::size_t i = 0; i < 4; ++i) QCOMPARE(due[i].id[31], order[i]);
  QCOMPARE(table.to_check(4, start).size(), 2u);
}

void TestRoutingTable::the_farther_buckets_hold_more() {
  for (const auto& [bit, room] : {std::pair{0, 64u}, {1, 32u}, {2, 20u}, {9, 20u}}) {
    RoutingTable table({}, {}, true);
    for (std::uint8_t i = 0; i < 100; ++i) {
      net::Contact contact = far_contact(i, 1);
      contact.id[0] = 0;
      contact.id[std::size_t(bit) / 8] = static_cast<std::uint8_t>(0x80 >> (bit % 8));
      table.answered(contact, start);
    }
    QCOMPARE(table.size(), std::size_t(room));
  }
}

void TestRoutingTable::every_bucket_is_looked_up_in_turn() {
  RoutingTable table({}, {}, false);
  QVERIFY(!table.stale_bucket(start, start));
  net::Contact near = far_contact(1, 1);
  near.id[0] = 0x10;  // bucket 3: four buckets
  table.answered(near, start);
  std::set<int> seen;
  for (int i = 0; i < 4; ++i) seen.insert(table.stale_bucket(start, start).value());
  QCOMPARE(seen.size(), 4u);
  QVERIFY(!table.stale_bucket(start, start));
  QVERIFY(table.stale_bucket(start + std::chrono::hours(1), start + std::chrono::hours(1)));
}

void TestRoutingTable::the_size_of_the_network_is_estimated() {
  for (const int members : {50, 1000, 20'000}) {
    double ratio = 1;
    for (std::uint64_t seed = 1; seed <= 5; ++seed) {
      Rng rng(seed);
      RoutingTable table(random_id(rng), {}, true);
      for (int i = 0; i < members; ++i)
        table.answered({random_id(rng), {platform::IpAddress::v4(10, 0, 0, 1), 9000}}, start);
      ratio *= std::pow(table.estimated_members() / members, 0.2);
    }
    QVERIFY2(ratio > 0.5 && ratio < 2, qPrintable(QString::number(ratio)));
  }
}

NS_TEST(TestRoutingTable)
#include "test_routing_table.moc"
