// The records that a member keeps for others: sequences, expiry, and every limit that bounds what strangers
// can make it hold.
#include <QtTest>

#include <fmt/format.h>

#include "core/dht/record_store.h"
#include "tests/support/test_main.h"

using namespace neuroshard;
using namespace neuroshard::dht;

namespace {

const Hash256 network{};
const WallTime now{std::chrono::milliseconds(1'800'000'000'000)};
const WallTime later = now + std::chrono::hours(1);

crypto::PublicKey publisher(std::uint32_t number) {
  crypto::PublicKey key{};
  for (std::size_t i = 0; i < 4; ++i) key[i] = static_cast<std::uint8_t>(number >> (8 * i));
  return key;
}

// Not signed: the store trusts check_record().
Record record(const std::string& path, std::uint32_t by, std::uint64_t sequence, std::size_t size = 10,
              WallTime expires = later) {
  return {path, publisher(by), sequence, expires, Bytes(size, static_cast<std::uint8_t>(sequence)), {}};
}

Expected<void> put(RecordStore& store, const Record& one, std::uint64_t group = 0) {
  return store.put(key_of(network, one.path), one, group, now);
}

std::vector<const Record*> find(const RecordStore& store, const std::string& path, WallTime when = now) {
  return store.find(key_of(network, path), when);
}

}  // namespace

class TestRecordStore : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void the_highest_sequence_of_each_publisher_stays();
  void two_records_of_one_sequence_are_refused();
  void what_expired_is_not_given_out_and_frees_its_place();
  void a_key_keeps_so_many_publishers();
  void a_neighbourhood_gets_a_few_places_of_a_key();
  void a_few_neighbourhoods_cannot_fill_a_key();
  void one_publisher_cannot_fill_a_member();
  void a_flood_is_bounded_and_leaves_what_is_near();
  void a_flood_of_one_neighbourhood_replaces_its_own_records();
  void a_larger_record_of_the_same_publisher_keeps_the_limit_of_bytes();
};

void TestRecordStore::the_highest_sequence_of_each_publisher_stays() {
  RecordStore store({});
  QVERIFY(put(store, record("/layers/1", 1, 5)).ok());
  QVERIFY(put(store, record("/layers/1", 2, 3)).ok());
  QVERIFY(put(store, record("/layers/1", 1, 6, 2000)).ok());
  QCOMPARE(put(store, record("/layers/1", 1, 4)).error().code, ErrorCode::Denied);
  QVERIFY(put(store, record("/layers/1", 1, 6, 2000)).ok());  // the same again
  const auto held = find(store, "/layers/1");
  QCOMPARE(held.size(), 2u);
  for (const Record* one : held) QCOMPARE(one->sequence, one->publisher == publisher(1) ? 6u : 3u);
  QCOMPARE(store.records(), 2u);
  QVERIFY(store.bytes() > 2000 && store.bytes() < 3000);
}

void TestRecordStore::two_records_of_one_sequence_are_refused() {
  RecordStore store({});
  QVERIFY(put(store, record("/layers/1", 1, 5, 10)).ok());
  QCOMPARE(put(store, record("/layers/1", 1, 5, 11)).error().code, ErrorCode::Denied);
}

void TestRecordStore::what_expired_is_not_given_out_and_frees_its_place() {
  RecordStore store({});
  QVERIFY(put(store, record("/layers/1", 1, 1)).ok());
  QVERIFY(put(store, record("/layers/1", 2, 1, 10, later + std::chrono::hours(1))).ok());
  QCOMPARE(find(store, "/layers/1", later).size(), 1u);
  store.drop_expired(later);
  QCOMPARE(store.records(), 1u);
  store.drop_expired(later + std::chrono::hours(1));
  QCOMPARE(store.records(), 0u);
  QCOMPARE(store.bytes(), 0u);
}

void TestRecordStore::a_key_keeps_so_many_publishers() {
  RecordStore store({});
  for (std::uint32_t i = 0; i < 64; ++i) QVERIFY(put(store, record("/layers/1", i, 1), i).ok());
  QCOMPARE(put(store, record("/layers/1", 64, 1), 64).error().code, ErrorCode::Exhausted);
  QVERIFY(put(store, record("/layers/1", 3, 2), 3).ok());  // who is in may renew
  QVERIFY(put(store, record("/layers/2", 64, 1), 64).ok());
}

void TestRecordStore::a_neighbourhood_gets_a_few_places_of_a_key() {
  RecordStore store({});
  for (std::uint32_t i = 0; i < 8; ++i) QVERIFY(put(store, record("/layers/1", i, 1), 77).ok());
  const auto refused = put(store, record("/layers/1", 8, 1), 77);
  QVERIFY(!refused.ok() && refused.error().message.find("address range") != std::string::npos);
  QVERIFY(put(store, record("/layers/1", 9, 1), 78).ok());
}

void TestRecordStore::a_few_neighbourhoods_cannot_fill_a_key() {
  RecordStore store({});
  for (std::uint32_t i = 0; i < 64; ++i) QVERIFY(put(store, record("/layers/1", i, 1), i % 8).ok());
  for (std::uint32_t i = 100; i < 140; ++i) QVERIFY(put(store, record("/layers/1", i, 1), i).ok());
  const auto held = find(store, "/layers/1");
  QCOMPARE(held.size(), 64u);
  for (std::uint32_t i = 100; i < 140; ++i)
    QVERIFY(std::any_of(held.begin(), held.end(),
                        [&](const Record* one) { return one->publisher == publisher(i); }));
  // Each of the eight is left with its share, and comes back in place of none but itself.
  QCOMPARE(put(store, record("/layers/1", 200, 1), 3).error().code, ErrorCode::Exhausted);
}

void TestRecordStore::one_publisher_cannot_fill_a_member() {
  RecordStore store({});
  int taken = 0;
  for (int i = 0; i < 2000; ++i) taken += put(store, record(fmt::format("/shards/{}", i), 1, 1)).ok();
  QCOMPARE(taken, 512);
  QVERIFY(put(store, record("/shards/5000", 2, 1)).ok());
}

void TestRecordStore::a_flood_is_bounded_and_leaves_what_is_near() {
  StoreLimits limits;
  limits.records = 200;
  limits.bytes = 100'000;
  const net::NodeId self = key_of(network, "/layers/1");  // the key is as near as can be
  RecordStore store(self, limits);
  QVERIFY(put(store, record("/layers/1", 1, 1)).ok());
  for (std::uint32_t i = 0; i < 5000; ++i) {
    static_cast<void>(put(store, record(fmt::format("/shards/{}", i), 1000 + i, 1, 700), i));
    QVERIFY(store.records() <= limits.records && store.bytes() <= limits.bytes);
  }
  QCOMPARE(find(store, "/layers/1").size(), 1u);
  const auto far = put(store, record("/shards/0", 1000, 2, 700));
  QVERIFY(far.ok() || far.error().code == ErrorCode::Exhausted);
}

// One computer makes as many ids as it wants, so that its records are nearer than all others.
void TestRecordStore::a_flood_of_one_neighbourhood_replaces_its_own_records() {
  StoreLimits limits;
  limits.records = 200;
  const net::NodeId self = key_of(network, "/flood/0");
  RecordStore store(self, limits);
  constexpr std::uint64_t attacker = 9;
  for (std::uint32_t i = 0; i < 50; ++i)
    QVERIFY(put(store, record(fmt::format("/shards/{}", i), i, 1), 100 + i).ok());
  // 8 publishers of the group at each key; the first key is the nearest that can be.
  for (std::uint32_t i = 0; i < 2000; ++i)
    static_cast<void>(put(store, record(fmt::format("/flood/{}", i / 8), 1000 + i, 1, 500), attacker));
  QCOMPARE(store.records(), limits.records);
  for (std::uint32_t i = 0; i < 50; ++i) QCOMPARE(find(store, fmt::format("/shards/{}", i)).size(), 1u);
  // Others that come later find room, too.
  for (std::uint32_t i = 50; i < 100; ++i)
    QVERIFY(put(store, record(fmt::format("/shards/{}", i), i, 1), 100 + i).ok());
  for (std::uint32_t i = 0; i < 100; ++i) QCOMPARE(find(store, fmt::format("/shards/{}", i)).size(), 1u);
  QCOMPARE(find(store, "/flood/0").size(), 8u);
}

void TestRecordStore::a_larger_record_of_the_same_publisher_keeps_the_limit_of_bytes() {
  StoreLimits limits;
  limits.bytes = 4000;
  RecordStore store(key_of(network, "/layers/1"), limits);
  QVERIFY(put(store, record("/layers/1", 1, 1, 10), 1).ok());
  QVERIFY(put(store, record("/layers/1", 2, 1, 10), 2).ok());
  QVERIFY(put(store, record("/layers/1", 1, 2, 3000), 1).ok());
  QCOMPARE(put(store, record("/layers/1", 2, 2, 3000), 2).error().code, ErrorCode::Exhausted);
  QVERIFY(store.bytes() <= limits.bytes);
  for (const Record* one : find(store, "/layers/1"))
    QCOMPARE(one->sequence, one->publisher == publisher(1) ? 2u : 1u);
  QCOMPARE(store.records(), 2u);
}

NS_TEST(TestRecordStore)
#include "test_record_store.moc"
