// wallet.keystore: what goes in comes out with the right key only, and no file, however damaged, does harm.
#include <QtTest>

#include "core/crypto/hash.h"
#include "core/crypto/keystore.h"
#include "tests/support/test_main.h"
#include "tests/unit/crypto/counting_entropy.h"

using namespace neuroshard;
using namespace neuroshard::crypto;

class TestKeystore : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void round_trip_data();
  void round_trip();
  void wrong_key_is_denied();
  void public_part_needs_no_key();
  void sealed_files_do_not_show_the_secret();
  void same_wallet_twice_gives_different_files();
  void every_flipped_byte_is_noticed();
  void every_truncation_is_noticed();
  void forged_public_key_is_noticed();
  void absurd_argon2_parameters_are_refused();
  void bad_locks_are_refused();
  void newer_version_says_update();
  void protection_names();
};

namespace {

// The smallest work that libsodium does: tests check the format, not the cost.
constexpr PassphraseCost cheap{1, PassphraseCost::min_memory_kib};
constexpr std::string_view passphrase = "correct horse battery staple";
const WallTime created{std::chrono::milliseconds(1'700'000'000'123)};

Bytes keychain_key() {
  return Bytes(keychain_key_bytes, 0x5a);
}

WalletSecret with_words() {
  return WalletSecret::parse("legal winner thank year wave sausage worth useful legal winner thank yellow")
      .value();
}
WalletSecret token_only() {
  return WalletSecret::from_token(with_words().token().bytes()).value();
}

Keystore sealed(const WalletSecret& secret, Protection protection) {
  test::CountingEntropy entropy;
  const Bytes key = keychain_key();
  KeystoreLock lock;
  lock.protection = protection;
  lock.cost = cheap;
  if (protection == Protection::Passphrase) lock.material = as_bytes(passphrase);
  if (protection == Protection::Keychain) lock.material = key;
  return Keystore::seal(secret, lock, created, entropy).value();
}

ByteSpan material(Protection protection, const Bytes& key) {
  return protection == Protection::Keychain ? ByteSpan(key) : as_bytes(passphrase);
}

Bytes file_of(const Keystore& keystore) {
  const Secret file = keystore.encode();
  return Bytes(file.bytes().begin(), file.bytes().end());
}

// Puts the right checksum under a forged file.
void reseal_checksum(Bytes& file) {
  const Hash256 checksum = sha256(ByteSpan(file).first(file.size() - 32));
  std::copy(checksum.begin(), checksum.end(), file.end() - 32);
}

bool contains(const Bytes& file, ByteSpan secret) {
  return std::search(file.begin(), file.end(), secret.begin(), secret.end()) != file.end();
}

}  // namespace

void TestKeystore::round_trip_data() {
  QTest::addColumn<int>("protection");
  QTest::addColumn<bool>("words");
  for (const Protection p : {Protection::None, Protection::Passphrase, Protection::Keychain}) {
    for (const bool words : {true, false}) {
      QTest::addRow("%s %s", std::string(to_string(p)).c_str(), words ? "words" : "token")
          << static_cast<int>(p) << words;
    }
  }
}

void TestKeystore::round_trip() {
  QFETCH(int, protection);
  QFETCH(bool, words);
  const auto p = static_cast<Protection>(protection);
  const WalletSecret secret = words ? with_words() : token_only();
  const Bytes file = file_of(sealed(secret, p));
  QVERIFY(file.size() <= max_keystore_bytes);
  const Keystore keystore = Keystore::decode(file).value();
  const WalletSecret back = keystore.unlock(material(p, keychain_key())).value();
  QCOMPARE(to_hex(back.token().bytes()), to_hex(secret.token().bytes()));
  QCOMPARE(back.has_words(), words);
  QCOMPARE(std::string(back.backup_text().text()), std::string(secret.backup_text().text()));
}

void TestKeystore::wrong_key_is_denied() {
  const Keystore by_passphrase = sealed(with_words(), Protection::Passphrase);
  const auto wrong = by_passphrase.unlock(as_bytes("correct horse battery stapl"));
  QVERIFY(!wrong.ok());
  QCOMPARE(wrong.error().code, ErrorCode::Denied);
  const Keystore by_keychain = sealed(with_words(), Protection::Keychain);
  Bytes key = keychain_key();
  key[31] ^= 1;
  QCOMPARE(by_keychain.unlock(key).error().code, ErrorCode::Denied);
  QCOMPARE(by_keychain.unlock(ByteSpan(key).first(31)).error().code, ErrorCode::InvalidArgument);
  QCOMPARE(by_passphrase.unlock({}).error().code, ErrorCode::InvalidArgument);
}

void TestKeystore::public_part_needs_no_key() {
  for (const Protection p : {Protection::None, Protection::Passphrase, Protection::Keychain}) {
    const Keystore keystore = Keystore::decode(file_of(sealed(with_words(), p))).value();
    QCOMPARE(keystore.public_key(), with_words().key().public_key());
    QCOMPARE(keystore.wallet_id(), std::string("e69a7dfa07da5822"));
    QCOMPARE(keystore.protection(), p);
    QCOMPARE(to_unix_ms(keystore.created()), to_unix_ms(created));
    QVERIFY(keystore.has_words());
  }
  QCOMPARE(sealed(with_words(), Protection::Keychain).keychain_item(),
           std::string("000102030405060708090a0b0c0d0e0f"));
}

void TestKeystore::sealed_files_do_not_show_the_secret() {
  const WalletSecret secret = with_words();
  for (const Protection p : {Protection::Passphrase, Protection::Keychain}) {
    for (const WalletSecret& wallet : {with_words(), token_only()}) {
      const Bytes file = file_of(sealed(wallet, p));
      QVERIFY(!contains(file, secret.token().bytes()));
      QVERIFY(!contains(file, secret.entropy()->bytes()));
      QVERIFY(!contains(file, as_bytes("legal")));
      QVERIFY(!contains(file, as_bytes(passphrase)));
      QVERIFY(!contains(file, keychain_key()));
    }
  }
  QVERIFY(contains(file_of(sealed(secret, Protection::None)), secret.entropy()->bytes()));
}

void TestKeystore::same_wallet_twice_gives_different_files() {
  SystemEntropy entropy;
  const KeystoreLock lock{Protection::Passphrase, as_bytes(passphrase), cheap};
  const Bytes first = file_of(Keystore::seal(with_words(), lock, created, entropy).value());
  const Bytes second = file_of(Keystore::seal(with_words(), lock, created, entropy).value());
  QVERIFY(first != second);
}

void TestKeystore::every_flipped_byte_is_noticed() {
  for (const Protection p : {Protection::None, Protection::Passphrase, Protection::Keychain}) {
    const Bytes good = file_of(sealed(with_words(), p));
    for (std::size_t i = 0; i < good.size(); ++i) {
      Bytes bad = good;
      bad[i] ^= 1;
      const auto keystore = Keystore::decode(bad);
      QVERIFY(!keystore.ok());
      QVERIFY(!keystore.error().message.empty());
      // The same damage with a matching checksum: a sealed file is authenticated from its first byte; an open
      // one may differ in a field of no consequence, but never opens to another wallet.
      reseal_checksum(bad);
      const auto forged = Keystore::decode(bad);
      if (!forged.ok()) continue;
      const auto opened = forged->unlock(material(forged->protection(), keychain_key()));
      const bool in_checksum = i >= good.size() - sizeof(Hash256);  // put right again above
      if (p != Protection::None && !in_checksum) QVERIFY2(!opened.ok(), qPrintable(QString::number(i)));
      if (opened.ok()) QCOMPARE(opened->key().public_key(), with_words().key().public_key());
    }
  }
}

void TestKeystore::every_truncation_is_noticed() {
  Bytes file = file_of(sealed(with_words(), Protection::Passphrase));
  file.push_back(0);
  QVERIFY(!Keystore::decode(file).ok());
  file.pop_back();
  while (!file.empty()) {
    file.pop_back();
    QCOMPARE(Keystore::decode(file).error().code, ErrorCode::Corrupt);
  }
}

void TestKeystore::forged_public_key_is_noticed() {
  Bytes file = file_of(sealed(with_words(), Protection::None));
  file[40] ^= 1;
  reseal_checksum(file);
  const Keystore keystore = Keystore::decode(file).value();
  QCOMPARE(keystore.unlock({}).error().code, ErrorCode::Corrupt);
}

void TestKeystore::absurd_argon2_parameters_are_refused() {
  const Bytes good = file_of(sealed(with_words(), Protection::Passphrase));
  const std::pair<std::uint32_t, std::uint32_t> absurd[] = {
      {1, 0xffffffff}, {0xffffffff, 8}, {0, 8}, {1, 7}, {1, PassphraseCost::max_memory_kib + 1}, {17, 8}};
  for (const auto& [passes, memory_kib] : absurd) {
    Bytes file = good;
    store_le(file.data() + 28, passes);
    store_le(file.data() + 32, memory_kib);
    reseal_checksum(file);
    const auto keystore = Keystore::decode(file);
    QVERIFY(!keystore.ok());
    QCOMPARE(keystore.error().code, ErrorCode::Corrupt);
  }
}

void TestKeystore::bad_locks_are_refused() {
  test::CountingEntropy entropy;
  const std::string endless(max_passphrase_bytes + 1, 'x');
  const Bytes short_key(16);
  const KeystoreLock bad[] = {{Protection::Passphrase, {}, cheap},
                              {Protection::Passphrase, as_bytes(endless), cheap},
                              {Protection::Passphrase, as_bytes(passphrase), {1, 0xffffffff}},
                              {Protection::Passphrase, as_bytes(passphrase), {0, 1024}},
                              {Protection::Keychain, {}, cheap},
                              {Protection::Keychain, short_key, cheap}};
  for (const KeystoreLock& lock : bad) {
    QCOMPARE(Keystore::seal(with_words(), lock, created, entropy).error().code, ErrorCode::InvalidArgument);
  }
}

void TestKeystore::newer_version_says_update() {
  Bytes file = file_of(sealed(with_words(), Protection::None));
  store_le(file.data() + 8, std::uint32_t{2});
  reseal_checksum(file);
  QCOMPARE(Keystore::decode(file).error().code, ErrorCode::Unsupported);
}

void TestKeystore::protection_names() {
  for (const Protection p : {Protection::None, Protection::Passphrase, Protection::Keychain}) {
    QCOMPARE(parse_protection(to_string(p)).value(), p);
  }
  QVERIFY(!parse_protection("password").ok());
}

NS_TEST(TestKeystore)
#include "test_keystore.moc"
