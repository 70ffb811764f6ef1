// The file of good peers: what comes back, what is refused, whom it keeps.
#include <QtTest>

#include "core/crypto/hash.h"
#include "core/swarm/peer_cache.h"
#include "tests/support/test_main.h"

using namespace neuroshard;
using namespace neuroshard::swarm;

namespace {

const WallTime begin{std::chrono::hours(24 * 365 * 50)};

CachedPeer peer(std::uint8_t number, std::uint64_t sequence = 1) {
  Hash256 seed{}, network{};
  seed.fill(number);
  CachedPeer made;
  made.heard = begin + std::chrono::minutes(number);
  made.record.made = begin;
  made.record.expires = begin + std::chrono::hours(1);
  made.record.sequence = sequence;
  made.record.program = "test";
  made.record.endpoints = {{net::Reach::Direct, {platform::IpAddress::v4(11, number, 0, 1), 9000}}};
  const auto is_signed = net::sign_node_record(made.record, crypto::KeyPair::from_seed(seed), network);
  return is_signed.ok() ? made : CachedPeer();
}

// The same content with a checksum that holds.
Bytes summed(Bytes bytes) {
  const std::size_t size = bytes.size() - sizeof(Hash256);
  const Hash256 sum = crypto::sha256(ByteSpan(bytes).first(size));
  std::copy(sum.begin(), sum.end(), bytes.begin() + static_cast<std::ptrdiff_t>(size));
  return bytes;
}

}  // namespace

class TestPeerCache : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void round_trip();
  void damage_is_noticed();
  void lengths_are_checked();
  void the_last_heard_stay();
  void one_address_group_does_not_fill_it();
};

void TestPeerCache::round_trip() {
  const std::vector<CachedPeer> peers{peer(3), peer(1)};
  const Bytes bytes = encode_peer_cache(peers);
  const auto back = decode_peer_cache(bytes);
  QVERIFY(back.ok());
  QCOMPARE(back->size(), std::size_t(2));
  QVERIFY((*back)[0].record.id() == peers[0].record.id());
  QVERIFY((*back)[0].heard == peers[0].heard);
  QVERIFY((*back)[1].record.endpoints == peers[1].record.endpoints);
  QVERIFY(net::check_node_record((*back)[1].record, Hash256{}, begin).ok());
  QVERIFY(encode_peer_cache(*back) == bytes);
  QVERIFY(decode_peer_cache(encode_peer_cache({}))->empty());
}

void TestPeerCache::damage_is_noticed() {
  const Bytes good = encode_peer_cache({peer(1), peer(2)});
  for (std::size_t i = 0; i < good.size(); ++i) {
    Bytes bad = good;
    bad[i] ^= 0x40;
    QVERIFY(!decode_peer_cache(bad).ok());
    QVERIFY(!decode_peer_cache(ByteSpan(good).first(i)).ok());
  }
}

void TestPeerCache::lengths_are_checked() {
  const Bytes good = encode_peer_cache({peer(1), peer(2)});
  for (const std::size_t at : {std::size_t(6), std::size_t(7), std::size_t(16), std::size_t(17)}) {
    for (const int value : {0, 1, 3, 0x7f, 0xff}) {
      Bytes bad = good;
      if (bad[at] == value) continue;
      bad[at] = static_cast<std::uint8_t>(value);
      QVERIFY2(!decode_peer_cache(summed(bad)).ok(), QByteArray::number(static_cast<qulonglong>(at)));
    }
  }
  Bytes newer = good;
  newer[4] = 2;
  QCOMPARE(decode_peer_cache(summed(newer)).error().code, ErrorCode::Unsupported);
}

void TestPeerCache::the_last_heard_stay() {
  GoodPeers good;
  for (std::uint8_t i = 1; i <= 100; ++i) good.heard(peer(i).record, peer(i).heard);
  auto list = good.list();
  QCOMPARE(list.size(), max_cached_peers);
  QVERIFY(list.front().record.id() == peer(100).record.id());
  QVERIFY(list.back().record.id() == peer(37).record.id());
  QVERIFY(encode_peer_cache(list).size() <= max_peer_cache_bytes);
  // Heard again: to the front, with the newer of its records, whatever comes after that.
  good.heard(peer(50, 2).record, begin + std::chrono::hours(5));
  good.heard(peer(50, 1).record, begin);
  list = good.list();
  QVERIFY(list.front().record.id() == peer(50).record.id());
  QCOMPARE(list.front().record.sequence, std::uint64_t(2));
}

// A hundred peers of one address group that are heard all the time, and eight that were heard before.
void TestPeerCache::one_address_group_does_not_fill_it() {
  GoodPeers good;
  for (std::uint8_t i = 1; i <= 8; ++i) good.heard(peer(i).record, peer(i).heard);
  for (std::uint8_t i = 101; i <= 200; ++i) {
    CachedPeer one = peer(i);
    one.record.endpoints[0].endpoint.ip = platform::IpAddress::v4(11, 200, 0, i);
    good.heard(one.record, one.heard);
  }
  const auto list = good.list();
  QCOMPARE(list.size(), max_cached_peers);
  const auto kept = std::count_if(list.begin(), list.end(), [](const CachedPeer& one) {
    return one.record.endpoints[0].endpoint.ip.bytes[13] <= 8;
  });
  QCOMPARE(kept, 8);
}

NS_TEST(TestPeerCache)
#include "test_peer_cache.moc"
