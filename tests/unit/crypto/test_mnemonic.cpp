// The twelve words and the token. Words and seeds were computed with Python (hashlib.pbkdf2_hmac and an
// independent implementation of BIP39); public keys with hashlib.blake2b and the "cryptography" package.
#include <QFile>
#include <QtTest>

#include "core/crypto/hash.h"
#include "core/crypto/mnemonic.h"
#include "core/crypto/wallet_secret.h"
#include "tests/support/test_main.h"
#include "tests/unit/crypto/counting_entropy.h"

using namespace neuroshard;
using namespace neuroshard::crypto;

class TestMnemonic : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void word_list_is_the_published_one();
  void known_wallets_data();
  void known_wallets();
  void every_word_survives_a_round_trip();
  void typing_is_forgiven();
  void wrong_phrases_are_explained_data();
  void wrong_phrases_are_explained();
  void token_alone_opens_the_same_wallet();
  void nothing_public_is_a_plain_hash_of_a_secret();
};

namespace {

const std::string about =
    "abandon abandon abandon abandon abandon abandon abandon abandon abandon abandon abandon about";

}  // namespace

void TestMnemonic::word_list_is_the_published_one() {
  QCOMPARE(mnemonic_words().size(), std::size_t{2048});
  Sha256 embedded;
  for (const std::string_view word : mnemonic_words()) embedded.update(word).update("\n");
  QCOMPARE(to_hex(embedded.finish()),
           std::string("2f5eed53a4727b4bf8880d8f3f199efc90e58503646d9ff8eff3a2ed3b24dbda"));
}

void TestMnemonic::known_wallets_data() {
  QTest::addColumn<QString>("entropy");
  QTest::addColumn<QString>("words");
  QTest::addColumn<QString>("seed");
  QTest::addColumn<QString>("public_key");
  QTest::newRow("zeros") << "00000000000000000000000000000000" << QString::fromStdString(about)
                         << "5eb00bbddcf069084889a8ab9155568165f5c453ccb85e70811aaed6f6da5fc1"
                            "9a5ac40b389cd370d086206dec8aa6c43daea6690f20ad3d8d48b2d2ce9e38e4"
                         << "36e416d3c45c5a9b2cdc4ad23771c1415b6c52e48ed24e6d005127f55d2c794e";
  QTest::newRow("7f") << "7f7f7f7f7f7f7f7f7f7f7f7f7f7f7f7f"
                      << "legal winner thank year wave sausage worth useful legal winner thank yellow"
                      << "878386efb78845b3355bd15ea4d39ef97d179cb712b77d5c12b6be415fffeffe"
                         "5f377ba02bf3f8544ab800b955e51fbff09828f682052a20faa6addbbddfb096"
                      << "cd070822fc1870360004d43ec224b618649296a79f9b522f5408f811b94b31b5";
  QTest::newRow("ones") << "ffffffffffffffffffffffffffffffff"
                        << "zoo zoo zoo zoo zoo zoo zoo zoo zoo zoo zoo wrong"
                        << "b6a6d8921942dd9806607ebc2750416b289adea669198769f2e15ed926c3aa92"
                           "bf88ece232317b4ea463e84b0fcd3b53577812ee449ccc448eb45e6f544e25b6"
                        << "e92c0cbb0c1c463a28d746533e81fbd0e0e63924ba18da728cc70247ca384ff9";
  QTest::newRow("mixed") << "9e885d952ad362caeb4efe34a8e91bd2"
                         << "ozone drill grab fiber curtain grace pudding thank cruise elder eight picnic"
                         << "e2f88a043776c828063d4c3c97173944d32cf847a925b6e40b0b8bd0b4bead3b"
                            "a734bdda5250d4698b310a71c9934e1a48e562315ce22bf85f89459df0e73a6c"
                         << "ea8a6a482d46a4a906edcd99e8ee08273620e045b687eb58f254b71972462e6a";
  QTest::newRow("random") << "c0ba5a8e914111210f2bd131f3d5e08d"
                          << "scheme spot photo card baby mountain device kick cradle pact join borrow"
                          << "00e1e39a39e23735adab690d0ffbefda6cacc063b4a5fcc605de060bd370adc5"
                             "4c94370d966b9a3fae5ed16bd58a02224cbefca4146a083951b70be2a2ce3dcc"
                          << "7a42efa29e0e98c9c1ebfcc8ebea109c8302867dab9ab8b11a7490bf1364d77a";
}

void TestMnemonic::known_wallets() {
  QFETCH(QString, entropy);
  QFETCH(QString, words);
  QFETCH(QString, seed);
  QFETCH(QString, public_key);
  const Bytes bytes = from_hex(entropy.toStdString()).value();
  QCOMPARE(std::string(words_from_entropy(bytes).text()), words.toStdString());
  QCOMPARE(to_hex(entropy_from_words(words.toStdString()).value().bytes()), entropy.toStdString());
  QCOMPARE(to_hex(seed_from_words(words.toStdString()).bytes()), seed.toStdString());
  const WalletSecret wallet = WalletSecret::parse(words.toStdString()).value();
  QCOMPARE(to_hex(wallet.token().bytes()), seed.left(64).toStdString());
  QCOMPARE(to_hex(wallet.key().public_key()), public_key.toStdString());
}

void TestMnemonic::every_word_survives_a_round_trip() {
  // 2048 phrases that start with each word once.
  for (unsigned index = 0; index < 2048; ++index) {
    Bytes entropy(mnemonic_entropy_bytes, static_cast<std::uint8_t>(index * 31));
    entropy[0] = static_cast<std::uint8_t>(index >> 3);
    entropy[1] = static_cast<std::uint8_t>((index & 7) << 5 | 9);
    const Secret words = words_from_entropy(entropy);
    QVERIFY(words.text().substr(0, words.text().find(' ')) == mnemonic_words()[index]);
    const auto back = entropy_from_words(words.text());
    QVERIFY(back.ok());
    QVERIFY(std::equal(entropy.begin(), entropy.end(), back->bytes().begin()));
  }
}

void TestMnemonic::typing_is_forgiven() {
  const std::string typed =
      "  Legal\twinner THANK year\nwave sausage worth useful\r\nlegal winner  thank yellow \n";
  QCOMPARE(to_hex(entropy_from_words(typed).value().bytes()),
           std::string("7f7f7f7f7f7f7f7f7f7f7f7f7f7f7f7f"));
  const std::string token = "5EB00BBDDCF069084889A8AB9155568165F5C453CCB85E70811AAED6F6DA5FC1";
  const WalletSecret wallet = WalletSecret::parse(" " + token + "\n").value();
  QVERIFY(!wallet.has_words());
}

void TestMnemonic::wrong_phrases_are_explained_data() {
  QTest::addColumn<QString>("text");
  QTest::addColumn<QString>("word_of_help");
  QTest::newRow("nothing") << " \n"
                           << "got nothing";
  QTest::newRow("eleven") << "zoo zoo zoo zoo zoo zoo zoo zoo zoo zoo zoo"
                          << "expected 12 words, got 11";
  QTest::newRow("thirteen") << "zoo zoo zoo zoo zoo zoo zoo zoo zoo zoo zoo wrong wrong"
                            << "expected 12 words, got 13";
  QTest::newRow("checksum") << "zoo zoo zoo zoo zoo zoo zoo zoo zoo zoo zoo zoo"
                            << "checksum";
  QTest::newRow("order") << "winner legal thank year wave sausage worth useful legal winner thank yellow"
                         << "checksum";
  QTest::newRow("misspelt") << "legal winner thank year wave sausaje worth useful legal winner thank yellow"
                            << "word 6 of the phrase is not in the word list; did you mean \"sausage\"?";
  QTest::newRow("first letters")
      << "legal winner thank year wavelength sausage worth useful legal winnerr thank yellow"
      << "word 5 of the phrase is not in the word list; did you mean \"wave\"?";
  QTest::newRow("unknown") << "legal winner thank year wave sausage worth useful legal winner thank qqqqqqqqq"
                           << "word 12 of the phrase is not in the word list; check";
  QTest::newRow("short token") << QString(63, 'a') << "64 characters";
  QTest::newRow("long token") << QString(65, 'a') << "64 characters";
  QTest::newRow("no hexadecimal") << QString(64, 'g') << "64 characters";
  QTest::newRow("too long") << QString("zoo ").repeated(1000) << "too long";
}

void TestMnemonic::wrong_phrases_are_explained() {
  QFETCH(QString, text);
  QFETCH(QString, word_of_help);
  const auto wallet = WalletSecret::parse(text.toStdString());
  QVERIFY(!wallet.ok());
  QCOMPARE(wallet.error().code, ErrorCode::InvalidArgument);
  const QString message = QString::fromStdString(wallet.error().describe());
  QVERIFY2(message.contains(word_of_help), qPrintable(message));
  // The typed text may be a secret with one slip.
  for (const QString& word : text.split(' ', Qt::SkipEmptyParts)) {
    if (word.size() > 5) QVERIFY2(!message.contains(word), qPrintable(message));
  }
}

void TestMnemonic::token_alone_opens_the_same_wallet() {
  const WalletSecret from_words = WalletSecret::parse(about).value();
  QVERIFY(from_words.has_words());
  QCOMPARE(std::string(from_words.backup_text().text()), about);
  const WalletSecret from_token = WalletSecret::from_token(from_words.token().bytes()).value();
  QVERIFY(!from_token.has_words());
  QCOMPARE(from_token.key().public_key(), from_words.key().public_key());
  QCOMPARE(std::string(from_token.backup_text().text()), to_hex(from_words.token().bytes()));
  QVERIFY(!WalletSecret::from_token(from_words.token().bytes().first(31)).ok());
  QVERIFY(!WalletSecret::from_entropy(from_words.token().bytes()).ok());
}

void TestMnemonic::nothing_public_is_a_plain_hash_of_a_secret() {
  test::CountingEntropy entropy;
  const WalletSecret wallet = WalletSecret::generate(entropy);
  const KeyPair key = wallet.key();
  const std::string token_hex = to_hex(wallet.token().bytes());
  const Hash256 hashes[] = {sha256(wallet.token().bytes()), sha256(wallet.entropy()->bytes()),
                            sha256(wallet.backup_text().bytes()), sha256(as_bytes(token_hex))};
  for (const Hash256& hash : hashes) {
    QVERIFY(PublicKey(key.public_key()) != hash);
    QVERIFY(node_id(key.public_key()) != hash);
    QVERIFY(wallet_id(key.public_key()) != to_hex(hash).substr(0, 16));
    QVERIFY(KeyPair::from_seed(hash).public_key() != key.public_key());
  }
  // Nor is the token itself the signing seed.
  Hash256 token{};
  std::copy_n(wallet.token().bytes().begin(), token.size(), token.begin());
  QVERIFY(KeyPair::from_seed(token).public_key() != key.public_key());
}

NS_TEST(TestMnemonic)
#include "test_mnemonic.moc"
