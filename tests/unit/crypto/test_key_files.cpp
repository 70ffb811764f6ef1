// wallet.keystore and node.key of format 1 in tests/golden/formats, made by an independent program
// (tests/golden/make_key_files.py, which also gave the values expected here). They open for ever: a later
// version may write another format, but never fail to read these.
#include <QtTest>

#include "core/crypto/keystore.h"
#include "core/crypto/node_key.h"
#include "tests/support/test_main.h"
#include "tests/unit/crypto/counting_entropy.h"

using namespace neuroshard;
using namespace neuroshard::crypto;

class TestKeyFiles : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void keystore_opens_data() { list_keystores(); }
  void keystore_opens();
  void keystore_is_written_the_same_data() { list_keystores(); }
  void keystore_is_written_the_same();
  void keystore_refuses_another_passphrase();
  void node_key_opens();
  void node_key_is_written_the_same();

 private:
  static void list_keystores();
};

namespace {

constexpr std::string_view words =
    "abandon amount liar amount expire adjust cage candy arch gather drum buyer";
constexpr std::string_view token = "3779b041fab425e9c0fd55846b2a03e9a388fb12784067bd8ebdb464c2574a05";
constexpr std::string_view wallet_key = "bf9fa4ae827fe4f9254d4a7399a8d80d436f618f92cb18383041c35383472afb";
constexpr std::string_view wallet_name = "de190c57762f5a2f";
constexpr std::string_view node_public_key =
    "2543b92ff1095511476adc8369db6ddc933665a11978dda1404ee1066ca9559d";
constexpr std::string_view node_name = "03396219237f75a64f12aeb7f39723abf400b160c364980a765dac24aeba2464";
constexpr std::string_view passphrase = "correct horse battery staple \xe2\x80\x94 \xc3\xbc";  // — ü in UTF-8
constexpr PassphraseCost cost{2, 64};
const WallTime created{std::chrono::milliseconds(1'700'000'000'123)};

Bytes fixture(const std::string& name) {
  QFile file(qEnvironmentVariable("NS_SOURCE_DIR") + "/tests/golden/formats/" + QString::fromStdString(name));
  if (!file.open(QIODevice::ReadOnly)) return {};
  const QByteArray content = file.readAll();
  return Bytes(content.begin(), content.end());
}

Bytes material_of(Protection protection) {
  if (protection == Protection::Keychain) return Bytes(keychain_key_bytes, 0x5a);
  if (protection == Protection::Passphrase) return Bytes(passphrase.begin(), passphrase.end());
  return {};
}

std::string keystore_name(Protection protection, bool with_words) {
  return "keystore-v1/" + std::string(to_string(protection)) + (with_words ? "-words" : "-token") +
         ".keystore";
}

}  // namespace

void TestKeyFiles::list_keystores() {
  QTest::addColumn<int>("protection");
  QTest::addColumn<bool>("with_words");
  for (const Protection protection : {Protection::None, Protection::Passphrase, Protection::Keychain}) {
    for (const bool with_words : {true, false}) {
      QTest::newRow(keystore_name(protection, with_words).c_str())
          << static_cast<int>(protection) << with_words;
    }
  }
}

void TestKeyFiles::keystore_opens() {
  QFETCH(int, protection);
  QFETCH(bool, with_words);
  const auto expected = static_cast<Protection>(protection);
  const Bytes file = fixture(keystore_name(expected, with_words));
  QVERIFY(!file.empty());
  const auto keystore = Keystore::decode(file);
  QVERIFY2(keystore.ok(), keystore.ok() ? "" : keystore.error().message.c_str());
  // The facts known without a key.
  QCOMPARE(to_hex(keystore->public_key()), std::string(wallet_key));
  QCOMPARE(keystore->wallet_id(), std::string(wallet_name));
  QCOMPARE(keystore->protection(), expected);
  QCOMPARE(keystore->has_words(), with_words);
  QCOMPARE(to_unix_ms(keystore->created()), to_unix_ms(created));
  if (expected == Protection::Keychain)
    QCOMPARE(keystore->keychain_item(), std::string("000102030405060708090a0b0c0d0e0f"));

  const auto secret = keystore->unlock(material_of(expected));
  QVERIFY2(secret.ok(), secret.ok() ? "" : secret.error().message.c_str());
  QCOMPARE(to_hex(secret->token().bytes()), std::string(token));
  QCOMPARE(std::string(secret->backup_text().text()), std::string(with_words ? words : token));
  QCOMPARE(to_hex(secret->key().public_key()), std::string(wallet_key));
}

// Two programs that were written apart agree on every byte. A later format changes this test, not the one
// above.
void TestKeyFiles::keystore_is_written_the_same() {
  QFETCH(int, protection);
  QFETCH(bool, with_words);
  KeystoreLock lock;
  lock.protection = static_cast<Protection>(protection);
  const Bytes material = material_of(lock.protection);
  lock.material = material;
  lock.cost = cost;
  test::CountingEntropy entropy;
  const WalletSecret secret = WalletSecret::parse(with_words ? words : token).value();
  const Secret file = Keystore::seal(secret, lock, created, entropy).value().encode();
  QCOMPARE(to_hex(file.bytes()), to_hex(fixture(keystore_name(lock.protection, with_words))));
}

void TestKeyFiles::keystore_refuses_another_passphrase() {
  const Keystore keystore =
      Keystore::decode(fixture(keystore_name(Protection::Passphrase, /*with_words=*/true))).value();
  // Passphrases are bytes: nothing is trimmed, and "u" is not "ü".
  for (const std::string_view wrong :
       {std::string_view("correct horse battery staple \xe2\x80\x94 u"), std::string_view("x"),
        std::string_view("correct horse battery staple \xe2\x80\x94 \xc3\xbc ")}) {
    const auto secret = keystore.unlock(as_bytes(wrong));
    QVERIFY(!secret.ok());
    QCOMPARE(secret.error().code, ErrorCode::Denied);
  }
}

void TestKeyFiles::node_key_opens() {
  const auto key = decode_node_key(fixture("node-key-v1.key"));
  QVERIFY2(key.ok(), key.ok() ? "" : key.error().message.c_str());
  QCOMPARE(to_hex(key->public_key()), std::string(node_public_key));
  QCOMPARE(to_hex(node_id(key->public_key())), std::string(node_name));
}

void TestKeyFiles::node_key_is_written_the_same() {
  Hash256 seed;
  for (std::size_t i = 0; i < seed.size(); ++i) seed[i] = static_cast<std::uint8_t>(64 + i);
  QCOMPARE(to_hex(encode_node_key(KeyPair::from_seed(seed)).bytes()), to_hex(fixture("node-key-v1.key")));
}

NS_TEST(TestKeyFiles)
#include "test_key_files.moc"
