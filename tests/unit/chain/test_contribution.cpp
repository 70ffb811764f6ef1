// Contributions, their entries in blocks, bitmaps and vectors: canonical bytes, one signature for both forms of
// a contribution, and no signature that holds in another history.
#include <QtTest>

#include "tests/support/test_main.h"
#include "tests/unit/chain/samples.h"

using namespace neuroshard;
using namespace neuroshard::chain;
using test::key_of;

namespace {

constexpr std::size_t most_rows = 8, most_members = 100;

}  // namespace

class TestChainContribution : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void contributions_are_canonical();
  void the_rows_ascend_and_are_bounded();
  void an_entry_carries_the_same_signature();
  void a_contribution_holds_for_its_opening_block_only();
  void every_field_is_signed();
  void bitmaps_have_no_unused_bits();
  void vectors_are_canonical();
  void the_members_of_a_vector_ascend_and_are_bounded();
  void what_a_vector_says_is_withheld_ascends();
  void every_field_of_a_vector_is_signed();
};

void TestChainContribution::contributions_are_canonical() {
  const Contribution contribution = samples::contribution(1);
  const Bytes bytes = encode_contribution(contribution);
  const auto decode = [](ByteSpan in) { return decode_contribution(in, most_rows); };
  QCOMPARE(samples::format_fault(bytes, samples::reencoder(decode, encode_contribution)), std::string());
  QVERIFY(*decode(bytes) == contribution);

  Contribution empty = contribution;
  empty.rows.clear();
  sign_contribution(empty, key_of(1), samples::network);
  QCOMPARE(samples::format_fault(encode_contribution(empty), samples::reencoder(decode, encode_contribution)),
           std::string());
  QCOMPARE(tokens_of(empty.rows), std::uint64_t{0});
}

void TestChainContribution::the_rows_ascend_and_are_bounded() {
  Contribution contribution = samples::contribution(1);
  QVERIFY(!decode_contribution(encode_contribution(contribution), 1).ok());
  std::swap(contribution.rows[0], contribution.rows[1]);
  QVERIFY(!decode_contribution(encode_contribution(contribution), most_rows).ok());
  contribution.rows[0].row = contribution.rows[1].row;
  QVERIFY(!decode_contribution(encode_contribution(contribution), most_rows).ok());
}

void TestChainContribution::an_entry_carries_the_same_signature() {
  const Contribution contribution = samples::contribution(1, 900);
  const ContributionEntry entry = entry_of(contribution, 12);
  QCOMPARE(entry.member, 12u);
  QCOMPARE(entry.tokens, std::uint64_t{900});
  QVERIFY(entry_holds(entry, contribution.opening, contribution.round, contribution.node, samples::network));
  QVERIFY2(contribution_id(entry) == contribution_id(entry_of(contribution, 3)),
           "the number is not part of it");
  ContributionEntry other = entry;
  other.signature[0] ^= 1;
  QVERIFY(contribution_id(other) != contribution_id(entry));
}

void TestChainContribution::a_contribution_holds_for_its_opening_block_only() {
  const Contribution contribution = samples::contribution(1);
  QVERIFY(contribution_holds(contribution, samples::network));
  QVERIFY(!contribution_holds(contribution, samples::filled(8)));
  Contribution other = contribution;
  other.opening = samples::filled(51);
  QVERIFY(!contribution_holds(other, samples::network));
  other = contribution;
  other.round += 1;
  QVERIFY(!contribution_holds(other, samples::network));
  other = contribution;
  other.node = key_of(2).public_key();
  QVERIFY(!contribution_holds(other, samples::network));
}

void TestChainContribution::every_field_is_signed() {
  const Contribution contribution = samples::contribution(1);
  const auto holds_with = [&](auto change) {
    Contribution other = contribution;
    change(other);
    return contribution_holds(other, samples::network);
  };
  QVERIFY(!holds_with([](Contribution& c) { c.rows[1].tokens += 1; }));
  QVERIFY(!holds_with([](Contribution& c) { c.rows[1].row += 1; }));
  QVERIFY(!holds_with([](Contribution& c) { c.rows[1].payload_bytes += 1; }));
  QVERIFY(!holds_with([](Contribution& c) { c.rows[1].payload[31] ^= 1; }));
  QVERIFY(!holds_with([](Contribution& c) { c.rows.pop_back(); }));
  QVERIFY(!holds_with([](Contribution& c) { c.batches[0] ^= 1; }));
  QVERIFY(!holds_with([](Contribution& c) { c.reveal[0] ^= 1; }));

  ContributionEntry entry = entry_of(contribution, 1);
  entry.tokens += 1;  // the entry claims more than its rows
  QVERIFY(!entry_holds(entry, contribution.opening, contribution.round, contribution.node, samples::network));
}

void TestChainContribution::bitmaps_have_no_unused_bits() {
  Bitmap bitmap(11);
  for (const std::size_t bit : {0u, 3u, 10u}) bitmap.set(bit);
  QCOMPARE(bitmap.count(), std::size_t{3});
  QVERIFY(bitmap.test(10) && !bitmap.test(9));
  QVERIFY(*Bitmap::from_bytes(11, bitmap.bytes()) == bitmap);
  QVERIFY(!Bitmap::from_bytes(10, bitmap.bytes()).ok());
  QVERIFY(!Bitmap::from_bytes(17, bitmap.bytes()).ok());
  QVERIFY(!Bitmap::from_bytes(8, bitmap.bytes()).ok());
  QVERIFY(Bitmap::from_bytes(16, bitmap.bytes()).ok());
  QVERIFY(Bitmap::from_bytes(0, {}).ok());
}

void TestChainContribution::vectors_are_canonical() {
  for (const std::vector<std::uint32_t>& members :
       {std::vector<std::uint32_t>{}, {7}, {1, 2, 3}, {1, 2, 3, 4, 5, 6, 7, 8, 70'000}}) {
    const Vector vector = samples::vector(2, members);
    const auto decode = [](ByteSpan in) { return decode_vector(in, most_members, 2); };
    QCOMPARE(samples::format_fault(encode_vector(vector), samples::reencoder(decode, encode_vector)),
             std::string());
    QVERIFY(*decode(encode_vector(vector)) == vector);
    QVERIFY(vector_holds(vector, key_of(2).public_key(), samples::network));
  }
}

void TestChainContribution::the_members_of_a_vector_ascend_and_are_bounded() {
  const Bytes bytes = encode_vector(samples::vector(2, {1, 2, 3}));
  QVERIFY(!decode_vector(bytes, 2, 2).ok());
  QVERIFY(!decode_vector(bytes, most_members, 1).ok());
  QVERIFY(!decode_vector(bytes, most_members, 3).ok());
  QVERIFY(!decode_vector(encode_vector(samples::vector(2, {1, 3, 2})), most_members, 2).ok());
  QVERIFY(!decode_vector(encode_vector(samples::vector(2, {1, 2, 2})), most_members, 2).ok());
  // Consecutive numbers are one run, however many: two that touch are another form of the same.
  QCOMPARE(encode_vector(samples::vector(2, {1, 2, 3})).size(),
           encode_vector(samples::vector(2, {7, 8})).size());
  Bytes touching = encode_vector(samples::vector(2, {1, 3}));
  constexpr std::size_t runs_at = 32 + 8 + 4 + 32;
  QVERIFY(decode_vector(touching, most_members, 2).ok());
  touching[runs_at + 4 + 8] = 2;  // the second run's first number
  QVERIFY(!decode_vector(touching, most_members, 2).ok());
  Bytes wide = encode_vector(samples::vector(2, {1, 2}));
  for (std::size_t i = 0; i < 4; ++i) wide[runs_at + 4 + 4 + i] = 0xFF;  // more than there are numbers
  QVERIFY(!decode_vector(wide, most_members, 2).ok());
}

void TestChainContribution::what_a_vector_says_is_withheld_ascends() {
  const auto with = [](std::vector<RowRound> withheld) {
    Vector vector = samples::vector(2, {1, 2, 3});
    vector.withheld = std::move(withheld);
    sign_vector(vector, key_of(2), samples::network);
    return vector;
  };
  const auto decode = [](const Vector& vector) {
    return decode_vector(encode_vector(vector), most_members, 2);
  };
  const Vector vector = with({{0, 5}, {1, 4}, {1, 5}});
  QVERIFY(*decode(vector) == vector);
  QVERIFY(vector_holds(vector, key_of(2).public_key(), samples::network));
  for (const auto& wrong : {with({{1, 4}, {0, 5}}), with({{1, 5}, {1, 4}}), with({{1, 4}, {1, 4}})})
    QVERIFY(!decode(wrong).ok());
  // Without any the bytes end with the signature: no empty list, and nothing of one that is cut off.
  const std::size_t end = encode_vector(with({})).size();
  Bytes bytes = encode_vector(with({}));
  for (int i = 0; i < 4; ++i) {
    bytes.push_back(0);
    QVERIFY(!decode_vector(bytes, most_members, 2).ok());
  }
  bytes = encode_vector(vector);
  for (std::size_t size = end + 1; size < bytes.size(); ++size)
    QVERIFY(!decode_vector(ByteSpan(bytes).first(size), most_members, 2).ok());
  // Cut off altogether it is another vector, which nobody signed.
  const auto cut = decode_vector(ByteSpan(bytes).first(end), most_members, 2);
  QVERIFY(cut.ok() && !vector_holds(*cut, key_of(2).public_key(), samples::network));
  std::vector<RowRound> many;
  for (std::uint32_t row = 0; row <= most_withheld; ++row) many.push_back({row, 4});
  QVERIFY(!decode(with(many)).ok());
  many.pop_back();
  QVERIFY(decode(with(many)).ok());
}

void TestChainContribution::every_field_of_a_vector_is_signed() {
  const Vector vector = samples::vector(2, {1, 2, 3});
  const auto holds_with = [&](auto change) {
    Vector other = vector;
    change(other);
    return vector_holds(other, key_of(2).public_key(), samples::network);
  };
  QVERIFY(holds_with([](Vector&) {}));
  QVERIFY(!holds_with([](Vector& v) { v.opening = samples::filled(51); }));
  QVERIFY(!holds_with([](Vector& v) { v.round += 1; }));
  QVERIFY(!holds_with([](Vector& v) { v.voter += 1; }));
  QVERIFY(!holds_with([](Vector& v) { v.members[2] = 4; }));
  QVERIFY(!holds_with([](Vector& v) { v.contributions[0] ^= 1; }));
  QVERIFY(!holds_with([](Vector& v) { v.payloads[1].set(1); }));
  QVERIFY(!holds_with([](Vector& v) { v.withheld = {{1, 5}}; }));
  QVERIFY(!vector_holds(vector, key_of(3).public_key(), samples::network));
  QVERIFY(!vector_holds(vector, key_of(2).public_key(), samples::filled(8)));
}

NS_TEST(TestChainContribution)
#include "test_contribution.moc"
