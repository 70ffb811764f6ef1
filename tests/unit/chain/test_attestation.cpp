// Attestations: their bytes, what a signature covers, and what the voters that hold a row decide.
#include <QtTest>

#include <cctype>
#include <functional>

#include "core/chain/attestation.h"
#include "tests/support/test_main.h"
#include "tests/unit/chain/samples.h"

using namespace neuroshard;
using namespace neuroshard::chain;

namespace {

RowResult result_of(std::uint32_t row, std::uint8_t anchor) {
  RowResult result;
  result.row = row;
  result.anchor.fill(anchor);
  result.trace.fill(7);
  result.norm_bits = 0x3ff0'0000'0000'0000;
  return result;
}

Attestation sample() {
  Attestation attestation;
  attestation.opening.fill(5);
  attestation.round = 12;
  attestation.voter = 3;
  attestation.rows = {result_of(2, 8), carried_row(4)};
  sign_attestation(attestation, test::key_of(1), samples::network);
  return attestation;
}

// One letter per wallet: its claim, '.' says nothing, '!' claims two things. The decision: a letter, '.' none yet, '-' the
// row is carried.
char decided(const std::string& wallets, bool late) {
  std::vector<RowResult> results;
  results.reserve(wallets.size() * 2);
  std::vector<HolderClaim> claims;
  for (std::uint32_t wallet = 0; wallet < wallets.size(); ++wallet) {
    const char says = wallets[wallet];
    claims.push_back({wallet, nullptr});
    const auto claim = [&](RowResult result) {
      results.push_back(std::move(result));
      claims.push_back({wallet, &results.back()});
    };
    if (says == '-') claim(carried_row(1));
    if (says == '!' || std::isalpha(static_cast<unsigned char>(says)))
      claim(result_of(1, static_cast<std::uint8_t>(says)));
    if (says == '!') claim(result_of(1, 1));
  }
  const auto result = attested_result(1, claims, late);
  if (!result) return '.';
  return result->carried ? '-' : static_cast<char>(result->anchor[0]);
}

class TestAttestation : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void bytes_are_canonical();
  void everything_is_signed();
  void holders_decide_data();
  void holders_decide();
};

void TestAttestation::bytes_are_canonical() {
  const Bytes bytes = encode_attestation(sample());
  QCOMPARE(decode_attestation(bytes, 8).value(), sample());
  QVERIFY2(!decode_attestation(bytes, 1).ok(), "more rows than the model has");
  for (std::size_t size = 0; size < bytes.size(); ++size)
    QVERIFY(!decode_attestation(ByteSpan(bytes).first(size), 8).ok());
  Bytes longer = bytes;
  longer.push_back(0);
  QVERIFY(!decode_attestation(longer, 8).ok());
  Attestation other = sample();
  std::swap(other.rows[0], other.rows[1]);
  QVERIFY2(!decode_attestation(encode_attestation(other), 8).ok(), "rows ascend");
  other.rows.clear();
  QVERIFY2(!decode_attestation(encode_attestation(other), 8).ok(), "it attests something");
}

void TestAttestation::everything_is_signed() {
  const crypto::PublicKey key = test::key_of(1).public_key();
  QVERIFY(attestation_holds(sample(), key, samples::network));
  QVERIFY(!attestation_holds(sample(), key, samples::filled(8)));
  QVERIFY(!attestation_holds(sample(), test::key_of(2).public_key(), samples::network));
  const std::vector<std::function<void(Attestation&)>> changes = {
      [](Attestation& a) { a.opening[0] ^= 1; },
      [](Attestation& a) { ++a.round; },
      [](Attestation& a) { ++a.voter; },
      [](Attestation& a) { ++a.rows[0].row; },
      [](Attestation& a) { a.rows[0].anchor[0] ^= 1; },
      [](Attestation& a) { a.rows[0].trace[0] ^= 1; },
      [](Attestation& a) { a.rows[0].norm_bits ^= 1; },
      [](Attestation& a) { a.rows.pop_back(); },
  };
  for (const auto& change : changes) {
    Attestation other = sample();
    change(other);
    QVERIFY(!attestation_holds(other, key, samples::network));
  }
}

void TestAttestation::holders_decide_data() {
  QTest::addColumn<QString>("wallets");
  QTest::addColumn<char>("soon");
  QTest::addColumn<char>("late");
  const auto row = [](const char* wallets, char soon, char late) {
    QTest::newRow(wallets) << QString(wallets) << soon << late;
  };
  // Fewer than five: all agree, or it is too late for those that say nothing; one that contradicts carries the row.
  row("A", 'A', 'A');
  row(".", '.', '-');
  row("AA", 'A', 'A');
  row("A.", '.', 'A');
  row("..", '.', '-');
  row("AB", '-', '-');
  row("A-", '-', '-');
  row("--", '-', '-');
  row("!", '-', '-');
  row("A!", '-', '-');
  row("AAAA", 'A', 'A');
  row("AAA.", '.', 'A');
  row("AAAB", '-', '-');
  // From five on: more than half of all, as soon as they are there.
  row("AAA..", 'A', 'A');
  row("AA...", '.', '-');
  row("AAABB", 'A', 'A');
  row("AAABBB", '-', '-');
  row("AAAB!B", '-', '-');
  row("AAAA!B", 'A', 'A');
  row("AABB!", '-', '-');
  row("BBBAA", 'B', 'B');
}

void TestAttestation::holders_decide() {
  QFETCH(QString, wallets);
  QFETCH(char, soon);
  QFETCH(char, late);
  QCOMPARE(decided(wallets.toStdString(), false), soon);
  QCOMPARE(decided(wallets.toStdString(), true), late);
}

}  // namespace

NS_TEST(TestAttestation)
#include "test_attestation.moc"
