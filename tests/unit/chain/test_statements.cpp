// Members' statements and vouchers: canonical bytes, and signatures that hold for one history, node and wallet.
#include <QtTest>

#include <algorithm>

#include "tests/support/test_main.h"
#include "tests/unit/chain/samples.h"

using namespace neuroshard;
using namespace neuroshard::chain;
using test::key_of;

class TestChainStatements : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void every_kind_is_canonical();
  void every_kind_fits_into_the_bound();
  void a_statement_holds_in_one_history_only();
  void a_registration_names_its_rows();
  void a_delegation_must_be_for_the_node_and_network();
  void a_voucher_is_bound_to_its_issuer_and_network();
  void a_used_voucher_is_bound_to_node_and_wallet();
  void commitments_have_a_bounded_length();
  void a_revocation_is_signed_by_the_wallet_it_names();
  void an_unknown_kind_is_refused();
};

void TestChainStatements::every_kind_is_canonical() {
  for (const Statement& statement : samples::statements_of_each_kind()) {
    const Bytes bytes = encode_statement(statement);
    QCOMPARE(samples::format_fault(bytes, samples::reencoder(decode_statement, encode_statement)),
             std::string());
    QVERIFY(*decode_statement(bytes) == statement);
    QVERIFY(statement_holds(statement, samples::network));
  }
  const Bytes voucher = encode_voucher(samples::voucher());
  QCOMPARE(voucher.size(), voucher_bytes);
  QCOMPARE(samples::format_fault(voucher, samples::reencoder(decode_voucher, encode_voucher)), std::string());
}

void TestChainStatements::every_kind_fits_into_the_bound() {
  for (const Statement& statement : samples::statements_of_each_kind())
    QVERIFY(encode_statement(statement).size() <= max_statement_bytes);
}

void TestChainStatements::a_statement_holds_in_one_history_only() {
  for (const Statement& statement : samples::statements_of_each_kind()) {
    QVERIFY(!statement_holds(statement, samples::filled(8)));
    Statement other = statement;
    other.reference.hash = samples::filled(99);
    QVERIFY(!statement_holds(other, samples::network));
    other = statement;
    other.reference.height += 1;
    QVERIFY(!statement_holds(other, samples::network));
    other = statement;
    other.node = key_of(77).public_key();
    QVERIFY(!statement_holds(other, samples::network));
  }
  Statement away = samples::statement(4, Away{});
  away.what = Leave{};
  QVERIFY2(!statement_holds(away, samples::network), "the kind is not signed");
}

void TestChainStatements::a_registration_names_its_rows() {
  for (const bool vouched : {false, true}) {
    Register what = samples::registration(1, vouched);
    const std::size_t of_all = encode_statement(samples::statement(1, what)).size();
    for (const std::vector<std::uint32_t>& rows : {std::vector<std::uint32_t>{0}, {2, 9}, {7, 8, 1023}}) {
      what.rows = RowSet::of(rows);
      const Statement statement = samples::statement(1, what);
      const Bytes bytes = encode_statement(statement);
      QCOMPARE(bytes.size(), of_all + 1 + rows.back() / 8 + 1);
      QCOMPARE(decode_statement(bytes).value(), statement);
      QVERIFY(statement_holds(statement, samples::network));
      Statement other = statement;
      std::get<Register>(other.what).rows = RowSet::of({1});
      QVERIFY2(!statement_holds(other, samples::network), "the rows are not signed");
      QCOMPARE(what.rows.end(), rows.back() + 1);
      for (std::uint32_t row = 0; row < 1100; ++row)
        QCOMPARE(what.rows.has(row), std::find(rows.begin(), rows.end(), row) != rows.end());
    }
    what.rows = RowSet::of({1024});
    QVERIFY2(!decode_statement(encode_statement(samples::statement(1, what))).ok(),
             "no model has such a row");
  }
  QVERIFY(!RowSet::from_bits({}).has_value());
  QVERIFY2(!RowSet::from_bits(Bytes{1, 0}).has_value(), "there are two ways to write one set");
}

void TestChainStatements::a_delegation_must_be_for_the_node_and_network() {
  Register what = samples::registration(1, false);
  const Statement for_another = samples::statement(2, what);
  QVERIFY(!statement_holds(for_another, samples::network));
  QVERIFY(!decode_statement(encode_statement(for_another)).ok());

  what.delegation =
      crypto::delegate(key_of(101), key_of(1).public_key(), samples::filled(8), what.delegation.expires, 2);
  QVERIFY(!statement_holds(samples::statement(1, what), samples::network));

  what = samples::registration(1, false);
  what.delegation.sequence += 1;  // not what the wallet signed
  const Statement unsigned_by_wallet = samples::statement(1, what);
  QVERIFY2(decode_statement(encode_statement(unsigned_by_wallet)).ok(), "reading checks no signature");
  QVERIFY(!statement_holds(unsigned_by_wallet, samples::network));

  what = samples::registration(1, false);
  what.delegation = crypto::delegate(key_of(101), key_of(1).public_key(), samples::network,
                                     WallTime(std::chrono::milliseconds(1)), 2);
  QVERIFY2(statement_holds(samples::statement(1, what), samples::network),
           "the expiry is for the registry, which knows the block's time");
}

void TestChainStatements::a_voucher_is_bound_to_its_issuer_and_network() {
  const Voucher voucher = samples::voucher();
  QVERIFY(voucher_holds(voucher, samples::network));
  QVERIFY(!voucher_holds(voucher, samples::filled(8)));
  Voucher other = voucher;
  other.issuer = key_of(2).public_key();
  QVERIFY(!voucher_holds(other, samples::network));
  other = voucher;
  other.serial += 1;
  QVERIFY(!voucher_holds(other, samples::network));
  other = voucher;
  other.expires_ms += 1;
  QVERIFY(!voucher_holds(other, samples::network));
  other = voucher;
  other.key = key_of(91).public_key();
  QVERIFY(!voucher_holds(other, samples::network));
}

void TestChainStatements::a_used_voucher_is_bound_to_node_and_wallet() {
  Register what = samples::registration(1, true);
  QVERIFY(statement_holds(samples::statement(1, what), samples::network));
  what.voucher_signature = samples::registration(2, true).voucher_signature;
  QVERIFY2(!statement_holds(samples::statement(1, what), samples::network), "another node's use is taken");

  Vouch vouch = samples::vouch(3);
  QVERIFY(statement_holds(samples::statement(3, vouch), samples::network));
  QVERIFY(!statement_holds(samples::statement(4, vouch), samples::network));
  vouch.wallet = key_of(150).public_key();
  QVERIFY(!statement_holds(samples::statement(3, vouch), samples::network));
  vouch = samples::vouch(3);
  vouch.voucher = samples::voucher(1, 91);  // its key did not sign
  QVERIFY(!statement_holds(samples::statement(3, vouch), samples::network));
}

void TestChainStatements::commitments_have_a_bounded_length() {
  for (const std::uint32_t length : {0u, 65'537u, 0xffffffffu}) {
    const Statement statement = samples::statement(7, Commit{{samples::filled(33), 4, length}});
    QVERIFY(!decode_statement(encode_statement(statement)).ok());
  }
  for (const std::uint32_t length : {1u, 65'536u}) {
    const Statement statement = samples::statement(7, Commit{{samples::filled(33), 4, length}});
    QVERIFY(decode_statement(encode_statement(statement)).ok());
  }
}

void TestChainStatements::a_revocation_is_signed_by_the_wallet_it_names() {
  const Statement right = samples::revocation(8);
  QCOMPARE(encode_statement(right).size(), std::size_t{32 + 8 + 32 + 1 + 32 + 64});
  QVERIFY(statement_holds(right, samples::network));
  Statement other = right;
  other.what = Revoke{key_of(150).public_key()};
  QVERIFY2(!statement_holds(other, samples::network), "another wallet");
  other = right;
  other.node = key_of(9).public_key();
  QVERIFY2(!statement_holds(other, samples::network), "another node");
  // A thief of the node key has this signature only.
  const Statement by_node = samples::statement(8, Revoke{key_of(108).public_key()});
  QVERIFY(!statement_holds(by_node, samples::network));
  // The wallet's key signs nothing else that would count here.
  Statement as_statement;
  as_statement.reference = right.reference;
  as_statement.what = right.what;
  sign_statement(as_statement, key_of(108), samples::network);
  as_statement.node = right.node;
  QVERIFY(!statement_holds(as_statement, samples::network));
  Statement leave = right;
  leave.what = Leave{};
  QVERIFY2(!statement_holds(leave, samples::network), "the kind is not signed");
}

void TestChainStatements::an_unknown_kind_is_refused() {
  Bytes bytes = encode_statement(samples::statement(4, Away{}));
  for (const int kind : {0, 8, 255}) {
    bytes[72] = static_cast<std::uint8_t>(kind);
    const auto read = decode_statement(bytes);
    QVERIFY(!read.ok());
    QCOMPARE(read.error().message, std::string("a member's statement can't be read"));
  }
}

NS_TEST(TestChainStatements)
#include "test_statements.moc"
