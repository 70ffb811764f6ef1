// Ed25519 with domain separation, against signatures made with Python's "cryptography" package.
#include <sys/resource.h>

#include <sodium.h>

#include <QFile>
#include <QtTest>
#include <algorithm>
#include <array>
#include <cstdio>
#include <memory>
#include <vector>

#include "core/crypto/keys.h"
#include "core/crypto/wallet_secret.h"
#include "tests/support/test_main.h"
#include "tests/unit/crypto/counting_entropy.h"

using namespace neuroshard;
using namespace neuroshard::crypto;

class TestKeys : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void signature_matches_the_documented_bytes();
  void a_signature_serves_one_purpose_network_and_message();
  void network_id_and_message_do_not_run_together();
  void signatures_hold_without_the_cofactor_only();
  void a_moved_key_signs_and_leaves_nothing_behind();
  void ids_are_derived_from_the_public_key();
  void system_entropy_does_not_repeat();
  void secret_is_locked_and_not_dumped();
};

namespace {

KeyPair about_wallet() {
  return WalletSecret::parse(
             "abandon abandon abandon abandon abandon abandon abandon abandon abandon abandon abandon "
             "about")
      .value()
      .key();
}

using Point = std::array<std::uint8_t, crypto_core_ed25519_BYTES>;

// A signature of the key of `seed`, whose R is r·B plus a point of small order, if one is given.
Signature made_signature(const Hash256& seed, ByteSpan signed_bytes, const Point* small_order) {
  std::array<std::uint8_t, crypto_hash_sha512_BYTES> hash{};
  Point r{}, a{}, h{}, s{}, big_r{};
  crypto_hash_sha512(hash.data(), seed.data(), seed.size());
  crypto_core_ed25519_scalar_reduce(r.data(), hash.data());  // any scalar
  hash[0] &= 0xf8;
  hash[31] = static_cast<std::uint8_t>((hash[31] & 0x7f) | 0x40);
  std::fill(hash.begin() + 32, hash.end(), std::uint8_t{0});
  crypto_core_ed25519_scalar_reduce(a.data(), hash.data());
  crypto_scalarmult_ed25519_base_noclamp(big_r.data(), r.data());
  if (small_order != nullptr) {
    const Point before = big_r;
    crypto_core_ed25519_add(big_r.data(), before.data(), small_order->data());
  }
  const PublicKey key = KeyPair::from_seed(seed).public_key();
  Bytes hashed(big_r.begin(), big_r.end());
  hashed.insert(hashed.end(), key.begin(), key.end());
  hashed.insert(hashed.end(), signed_bytes.begin(), signed_bytes.end());
  crypto_hash_sha512(hash.data(), hashed.data(), hashed.size());
  crypto_core_ed25519_scalar_reduce(h.data(), hash.data());
  crypto_core_ed25519_scalar_mul(s.data(), h.data(), a.data());
  const Point product = s;
  crypto_core_ed25519_scalar_add(s.data(), product.data(), r.data());
  Signature signature;
  std::copy(big_r.begin(), big_r.end(), signature.begin());
  std::copy(s.begin(), s.end(), signature.begin() + 32);
  return signature;
}

// The flags that the kernel keeps for the page of this address ("lo": locked, "dd": not in a core dump).
QList<QByteArray> page_flags(const void* address) {
  QFile maps("/proc/self/smaps");
  if (!maps.open(QIODevice::ReadOnly)) return {};
  const auto wanted = reinterpret_cast<std::uintptr_t>(address);
  bool inside = false;
  for (const QByteArray& line : maps.readAll().split('\n')) {
    unsigned long from = 0, to = 0;
    if (std::sscanf(line.constData(), "%lx-%lx ", &from, &to) == 2) inside = wanted >= from && wanted < to;
    if (inside && line.startsWith("VmFlags:")) return line.mid(8).simplified().split(' ');
  }
  return {};
}

Bytes counted(std::size_t n) {
  Bytes bytes(n);
  for (std::size_t i = 0; i < n; ++i) bytes[i] = static_cast<std::uint8_t>(i);
  return bytes;
}

}  // namespace

void TestKeys::signature_matches_the_documented_bytes() {
  // Python: Ed25519PrivateKey.sign(b"neuroshard/v1/" + b"\1" + (32).to_bytes(4, "little") + bytes(range(32))
  // + b"hello")
  const Signature signature = about_wallet().sign(Purpose::Manifest, counted(32), as_bytes("hello"));
  QCOMPARE(
      to_hex(signature),
      std::string(
          "dc4c8deae1ce751d5706d38fe34113c21231a019ffb36858bb859fff489b8242fe6193e269010fa0d9f8c357924ca20"
          "6c355425653ebec6aeceaf602e0d51f0a"));
}

void TestKeys::a_signature_serves_one_purpose_network_and_message() {
  const KeyPair key = about_wallet();
  const Bytes network = counted(32);
  Bytes other_network = network;
  other_network[0] ^= 1;
  const ByteSpan message = as_bytes("a checkpoint");
  const Signature signature = key.sign(Purpose::Checkpoint, network, message);
  QVERIFY(verify(key.public_key(), Purpose::Checkpoint, network, message, signature));
  for (const Purpose other :
       {Purpose::Manifest, Purpose::BatchRecord, Purpose::Delegation, Purpose::NetworkProfile}) {
    QVERIFY(!verify(key.public_key(), other, network, message, signature));
  }
  QVERIFY(!verify(key.public_key(), Purpose::Checkpoint, other_network, message, signature));
  QVERIFY(!verify(key.public_key(), Purpose::Checkpoint, {}, message, signature));
  QVERIFY(!verify(key.public_key(), Purpose::Checkpoint, network, as_bytes("b checkpoint"), signature));
  test::CountingEntropy entropy;
  QVERIFY(!verify(KeyPair::generate(entropy).public_key(), Purpose::Checkpoint, network, message, signature));
  for (std::size_t i = 0; i < signature.size(); ++i) {
    Signature flipped = signature;
    flipped[i] ^= 1;
    QVERIFY(!verify(key.public_key(), Purpose::Checkpoint, network, message, flipped));
  }
}

void TestKeys::network_id_and_message_do_not_run_together() {
  const KeyPair key = about_wallet();
  const Signature signature = key.sign(Purpose::Manifest, as_bytes("ab"), as_bytes("c"));
  QVERIFY(!verify(key.public_key(), Purpose::Manifest, as_bytes("a"), as_bytes("bc"), signature));
}

// All nodes must accept the same signatures, and libraries differ here: some multiply the equation by 8, so that a part of
// small order in R does not count.
void TestKeys::signatures_hold_without_the_cofactor_only() {
  const Hash256 seed{7};
  const PublicKey key = KeyPair::from_seed(seed).public_key();
  const std::string_view begin = "neuroshard/v1/", message = "message";
  Bytes signed_bytes(begin.begin(), begin.end());
  signed_bytes.push_back(static_cast<std::uint8_t>(Purpose::NodeRecord));
  append_le(signed_bytes, std::uint32_t{0});
  signed_bytes.insert(signed_bytes.end(), message.begin(), message.end());
  const auto holds = [&](const Signature& signature) {
    return verify(key, Purpose::NodeRecord, {}, as_bytes(message), signature);
  };
  QVERIFY(holds(made_signature(seed, signed_bytes, nullptr)));
  const auto of_order_8 = hash_from_hex("26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05");
  QVERIFY(of_order_8.ok());
  QVERIFY(!holds(made_signature(seed, signed_bytes, &*of_order_8)));
}

void TestKeys::a_moved_key_signs_and_leaves_nothing_behind() {
  KeyPair first = about_wallet();
  const Hash256 seed = first.seed();
  const Signature before = first.sign(Purpose::Manifest, {}, as_bytes("x"));
  KeyPair second = std::move(first);
  QCOMPARE(second.sign(Purpose::Manifest, {}, as_bytes("x")), before);
  QCOMPARE(second.seed(), seed);
  QCOMPARE(first.seed(), Hash256{});  // NOLINT(bugprone-use-after-move): the contract says wiped
}

void TestKeys::ids_are_derived_from_the_public_key() {
  const KeyPair key = about_wallet();
  QCOMPARE(to_hex(key.public_key()),
           std::string("36e416d3c45c5a9b2cdc4ad23771c1415b6c52e48ed24e6d005127f55d2c794e"));
  QCOMPARE(wallet_id(key.public_key()), std::string("94aaf0afcdc9487a"));
  QCOMPARE(to_hex(node_id(key.public_key())).substr(0, 16), std::string("94aaf0afcdc9487a"));
}

void TestKeys::system_entropy_does_not_repeat() {
  SystemEntropy entropy;
  Hash256 a{};
  Hash256 b{};
  entropy.fill(a);
  entropy.fill(b);
  QVERIFY(a != b);
  QVERIFY(a != Hash256{});
}

void TestKeys::secret_is_locked_and_not_dumped() {
  const Secret secret = Secret::copy_of("twelve words");
  const QList<QByteArray> flags = page_flags(secret.bytes().data());
  if (flags.isEmpty()) QSKIP("this system does not tell about a page");
  QVERIFY(flags.contains("dd"));
  rlimit limit{};
  QCOMPARE(::getrlimit(RLIMIT_MEMLOCK, &limit), 0);
#ifndef __SANITIZE_ADDRESS__  // under which mlock() does nothing
  if (limit.rlim_cur >= 64u << 10) QVERIFY(flags.contains("lo"));
#endif
  const auto ordinary = std::make_unique<char[]>(100);
  QVERIFY(!page_flags(ordinary.get()).contains("dd"));
  // Beyond the limit of locked memory a secret is still one.
  std::vector<Secret> many;
  for (int i = 0; i < 3000; ++i) many.push_back(Secret::copy_of("x"));
  QCOMPARE(many.back().text(), std::string_view("x"));
}

NS_TEST(TestKeys)
#include "test_keys.moc"
