// Signed records of nodes: their bytes, what is refused, and that only newer ones replace older ones.
#include <QtTest>

#include "core/net/node_book.h"
#include "core/net/node_record.h"
#include "tests/support/keys.h"
#include "tests/support/test_main.h"

using namespace neuroshard;
using namespace neuroshard::net;

namespace {

const WallTime now{std::chrono::milliseconds(1'800'000'000'000)};
constexpr auto hour = std::chrono::hours(1);

Hash256 network(std::uint8_t number = 7) {
  Hash256 id{};
  id.fill(number);
  return id;
}

using neuroshard::test::key_of;

NodeRecord sample(const crypto::KeyPair& node, std::uint64_t sequence = 3) {
  NodeRecord record;
  record.sequence = sequence;
  record.made = now;
  record.expires = now + hour;
  record.features = Feature::Dht | Feature::Tracker;
  record.version = {1, 2};
  record.memory_bytes = 8'000'000'000;
  record.tokens_per_second = 1234;
  record.upload = 1'000'000;
  record.download = 5'000'000;
  record.delegation = crypto::delegate(key_of(99), node.public_key(), network(), now + 2 * hour, 1);
  record.endpoints = {{Reach::Direct, {platform::IpAddress::v4(11, 22, 33, 44), 9000}},
                      {Reach::Relayed, platform::parse_endpoint("[2001:db8::1]:9001").value()},
                      {Reach::Turn, {platform::IpAddress::v4(11, 22, 33, 9), 50'000}}};
  record.slots = {
      {SlotKind::Layer, 2, 0}, {SlotKind::Embed, 0, 0}, {SlotKind::Layer, 2, 0}, {SlotKind::Expert, 2, 7}};
  record.program = "0.1.0";
  if (!sign_node_record(record, node, network()).ok()) qFatal("not signed");
  return record;
}

}  // namespace

class TestNodeRecord : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void it_comes_back_whole();
  void every_changed_byte_is_refused();
  void any_length_is_safe();
  void it_counts_for_its_network_and_time();
  void a_bad_delegation_is_refused();
  void a_delegation_that_expires_before_all_time_never_held();
  void limits_are_named();
  void only_newer_records_replace();
};

void TestNodeRecord::it_comes_back_whole() {
  const auto node = key_of(1);
  const NodeRecord record = sample(node);
  const Bytes bytes = encode_node_record(record);
  QVERIFY(bytes.size() < 500);
  const NodeRecord back = decode_node_record(bytes).value();
  QVERIFY(back.id() == crypto::node_id(node.public_key()));
  QCOMPARE(back.sequence, record.sequence);
  QVERIFY(back.made == record.made && back.expires == record.expires);
  QVERIFY(back.version == record.version);
  QCOMPARE(back.features, record.features);
  QCOMPARE(back.memory_bytes, record.memory_bytes);
  QCOMPARE(back.tokens_per_second, record.tokens_per_second);
  QCOMPARE(back.upload, record.upload);
  QCOMPARE(back.download, record.download);
  QVERIFY(back.endpoints == record.endpoints);
  QCOMPARE(back.slots.size(), std::size_t(3));  // sorted, none twice
  QVERIFY(back.slots.front().kind == SlotKind::Embed);
  QCOMPARE(back.program, record.program);
  QVERIFY(back.delegation && back.delegation->wallet_key == key_of(99).public_key());
  QVERIFY(check_node_record(back, network(), now).ok());
  QVERIFY(encode_node_record(back) == bytes);
}

void TestNodeRecord::every_changed_byte_is_refused() {
  const Bytes good = encode_node_record(sample(key_of(1)));
  for (std::size_t i = 0; i < good.size(); ++i) {
    Bytes bad = good;
    bad[i] ^= 1;
    const auto record = decode_node_record(bad);
    QVERIFY2(!record.ok() || !check_node_record(*record, network(), now).ok(),
             QByteArray::number(qulonglong(i)));
  }
}

void TestNodeRecord::any_length_is_safe() {
  const Bytes turned{3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 11, 22, 33, 9};
  const Bytes good = encode_node_record(sample(key_of(1)));
  for (std::size_t size = 0; size < good.size(); ++size)
    QVERIFY(!decode_node_record(ByteSpan(good).first(size)).ok());
  Bytes longer = good;
  longer.push_back(0);
  QCOMPARE(decode_node_record(longer).error().code, ErrorCode::Corrupt);
  Bytes odd = good;  // a way of which nobody knows
  const auto way = std::search(odd.begin(), odd.end(), turned.begin(), turned.end());
  QVERIFY(way != odd.end());
  *way = 4;
  QCOMPARE(decode_node_record(odd).error().code, ErrorCode::Corrupt);
  Bytes newer = good;
  newer[4] = 2;
  QCOMPARE(decode_node_record(newer).error().code, ErrorCode::Unsupported);
}

void TestNodeRecord::it_counts_for_its_network_and_time() {
  const NodeRecord record = sample(key_of(1));
  QVERIFY(!check_node_record(record, network(8), now).ok());
  QVERIFY(!check_node_record(record, network(), now + hour).ok());
  QVERIFY(check_node_record(record, network(), now + hour - std::chrono::milliseconds(1)).ok());
  QVERIFY(check_node_record(record, network(), now - std::chrono::seconds(60)).ok());
  QVERIFY(!check_node_record(record, network(), now - std::chrono::seconds(61)).ok());
  NodeRecord eternal = record;
  eternal.expires = now + std::chrono::hours(25);
  const auto node = key_of(1);
  QVERIFY(sign_node_record(eternal, node, network()).ok());
  const auto refused = check_node_record(eternal, network(), now);
  QVERIFY(!refused.ok());
  QCOMPARE(refused.error().code, ErrorCode::Denied);
}

void TestNodeRecord::a_bad_delegation_is_refused() {
  const auto node = key_of(1);
  const auto with = [&](const crypto::Delegation& delegation) {
    NodeRecord record = sample(node);
    record.delegation = delegation;
    if (!sign_node_record(record, node, network()).ok()) qFatal("not signed");
    return check_node_record(record, network(), now);
  };
  const auto wallet = key_of(99);
  QVERIFY(with(crypto::delegate(wallet, node.public_key(), network(), now + hour, 1)).ok());
  QVERIFY(!with(crypto::delegate(wallet, key_of(2).public_key(), network(), now + hour, 1)).ok());
  QVERIFY(!with(crypto::delegate(wallet, node.public_key(), network(8), now + hour, 1)).ok());
  QVERIFY(!with(crypto::delegate(wallet, node.public_key(), network(), now - hour, 1)).ok());
  auto forged = crypto::delegate(key_of(50), node.public_key(), network(), now + hour, 1);
  forged.wallet_key = wallet.public_key();
  QVERIFY(!with(forged).ok());
}

// Any peer can sign such a record.
void TestNodeRecord::a_delegation_that_expires_before_all_time_never_held() {
  const auto node = key_of(1);
  NodeRecord record = sample(node);
  QVERIFY(!never_held(record, network()));
  record.delegation = crypto::delegate(key_of(99), node.public_key(), network(), WallTime::min(), 1);
  QVERIFY(sign_node_record(record, node, network()).ok());
  QVERIFY(never_held(record, network()));
}

void TestNodeRecord::limits_are_named() {
  const auto node = key_of(1);
  NodeRecord record = sample(node);
  for (std::uint16_t i = 0; i < 300; ++i) record.slots.push_back({SlotKind::Layer, i, 0});
  QCOMPARE(sign_node_record(record, node, network()).error().code, ErrorCode::InvalidArgument);
}

void TestNodeRecord::only_newer_records_replace() {
  const auto node = key_of(1);
  NodeBook book(network());
  const NodeRecord third = sample(node, 3), fourth = sample(node, 4);
  QVERIFY(book.put(fourth, now).ok());
  QVERIFY(book.put(fourth, now).ok());                             // heard again
  QVERIFY(!book.put(sample(key_of(9), 3), now + 48 * hour).ok());  // too old: nobody's fault
  QCOMPARE(book.forged(), std::uint64_t{0});
  QCOMPARE(book.put(third, now).error().code, ErrorCode::Denied);
  NodeRecord other = sample(node, 4);
  other.memory_bytes = 1;
  QVERIFY(sign_node_record(other, node, network()).ok());
  QCOMPARE(book.put(other, now).error().code, ErrorCode::Denied);
  NodeRecord altered = sample(node, 5);
  altered.memory_bytes = 1;
  QCOMPARE(book.put(altered, now).error().code, ErrorCode::Denied);
  QCOMPARE(book.forged(), std::uint64_t{1});
  QCOMPARE(book.find(node.public_key() == third.node_key ? third.id() : NodeId{}, now)->sequence,
           std::uint64_t(4));
  QVERIFY(book.put(sample(node, 6), now).ok());
  QCOMPARE(book.all(now).size(), std::size_t(1));
  QVERIFY(book.find(third.id(), now + hour) == nullptr);
  book.drop_expired(now + hour);
  QCOMPARE(book.size(), std::size_t(0));
}

NS_TEST(TestNodeRecord)
#include "test_node_record.moc"
