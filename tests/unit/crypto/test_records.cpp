// node.key and the delegation of a wallet to a node.
#include <QtTest>

#include "core/crypto/delegation.h"
#include "core/crypto/node_key.h"
#include "core/crypto/wallet_secret.h"
#include "tests/support/test_main.h"
#include "tests/unit/crypto/counting_entropy.h"

using namespace neuroshard;
using namespace neuroshard::crypto;

class TestRecords : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void node_key_round_trip();
  void damaged_node_key_is_refused();
  void delegation_round_trip();
  void delegation_bytes_are_as_documented();
  void damaged_delegation_is_refused();
  void delegation_speaks_for_one_node_network_and_time();
};

namespace {

const WallTime expiry{std::chrono::milliseconds(1'800'000'000'000)};
const WallTime before = expiry - std::chrono::milliseconds(1);

Hash256 network() {
  Hash256 id;
  id.fill(0x4e);
  return id;
}

struct Fixture {
  test::CountingEntropy entropy;
  KeyPair wallet = WalletSecret::generate(entropy).key();
  KeyPair node = KeyPair::generate(entropy);
  Delegation delegation = delegate(wallet, node.public_key(), network(), expiry, 7);
};

}  // namespace

void TestRecords::node_key_round_trip() {
  test::CountingEntropy entropy;
  const KeyPair key = KeyPair::generate(entropy);
  const Secret file = encode_node_key(key);
  QCOMPARE(file.size(), node_key_file_bytes);
  const KeyPair back = decode_node_key(file.bytes()).value();
  QCOMPARE(back.public_key(), key.public_key());
  const Signature signature = back.sign(Purpose::Checkpoint, {}, as_bytes("m"));
  QVERIFY(verify(key.public_key(), Purpose::Checkpoint, {}, as_bytes("m"), signature));
}

void TestRecords::damaged_node_key_is_refused() {
  test::CountingEntropy entropy;
  const Secret good = encode_node_key(KeyPair::generate(entropy));
  for (std::size_t i = 0; i < good.size(); ++i) {
    Secret bad = Secret::copy_of(good.bytes());
    bad.bytes()[i] ^= 1;
    const auto key = decode_node_key(bad.bytes());
    QVERIFY(!key.ok());
    QVERIFY(key.error().code == ErrorCode::Corrupt || key.error().code == ErrorCode::Unsupported);
    QVERIFY(!decode_node_key(good.bytes().first(i)).ok());
  }
  Secret newer = Secret::copy_of(good.bytes());
  newer.bytes()[8] = 2;
  QCOMPARE(decode_node_key(newer.bytes()).error().code, ErrorCode::Unsupported);
}

void TestRecords::delegation_round_trip() {
  const Fixture f;
  const Delegation back = decode_delegation(encode_delegation(f.delegation)).value();
  QCOMPARE(back.node_key, f.node.public_key());
  QCOMPARE(back.wallet_key, f.wallet.public_key());
  QCOMPARE(back.network_id, network());
  QCOMPARE(to_unix_ms(back.expires), to_unix_ms(expiry));
  QCOMPARE(back.sequence, std::uint64_t{7});
  QVERIFY(check_delegation(back, f.node.public_key(), network(), before).ok());
}

void TestRecords::delegation_bytes_are_as_documented() {
  const Fixture f;
  const Bytes bytes = encode_delegation(f.delegation);
  QCOMPARE(bytes.size(), delegation_bytes);
  QCOMPARE(to_hex(ByteSpan(bytes).first(8)), std::string("4e53444c0100b800"));
  QCOMPARE(to_hex(ByteSpan(bytes).subspan(72, 32)), to_hex(network()));
  QCOMPARE(load_le<std::uint64_t>(bytes.data() + 104), std::uint64_t{1'800'000'000'000});
  QCOMPARE(load_le<std::uint64_t>(bytes.data() + 112), std::uint64_t{7});
  Signature signature;
  std::copy_n(bytes.data() + 120, signature.size(), signature.begin());
  QVERIFY(
      verify(f.wallet.public_key(), Purpose::Delegation, network(), ByteSpan(bytes).first(120), signature));
}

void TestRecords::damaged_delegation_is_refused() {
  const Fixture f;
  const Bytes good = encode_delegation(f.delegation);
  for (std::size_t i = 0; i < good.size(); ++i) {
    Bytes bad = good;
    bad[i] ^= 1;
    QVERIFY(!decode_delegation(bad).ok());
    QVERIFY(!decode_delegation(ByteSpan(good).first(i)).ok());
  }
  Bytes longer = good;
  longer.push_back(0);
  QVERIFY(!decode_delegation(longer).ok());
}

void TestRecords::delegation_speaks_for_one_node_network_and_time() {
  Fixture f;
  const PublicKey node = f.node.public_key();
  Hash256 other_network = network();
  other_network[5] ^= 1;
  QCOMPARE(check_delegation(f.delegation, f.wallet.public_key(), network(), before).error().code,
           ErrorCode::Denied);
  QCOMPARE(check_delegation(f.delegation, node, other_network, before).error().code, ErrorCode::Denied);
  QCOMPARE(check_delegation(f.delegation, node, network(), expiry).error().code, ErrorCode::Denied);
  // Signed by the node itself instead of the wallet.
  Delegation forged = delegate(f.node, node, network(), expiry, 8);
  forged.wallet_key = f.wallet.public_key();
  QCOMPARE(check_delegation(forged, node, network(), before).error().code, ErrorCode::Denied);
  f.delegation.sequence += 1;
  QCOMPARE(check_delegation(f.delegation, node, network(), before).error().code, ErrorCode::Denied);
}

NS_TEST(TestRecords)
#include "test_records.moc"
