// A node checks others' attestations cheaply before it verifies a signature, and gives each voter one voice.
#include <QtTest>

#include "core/rounds/attestation_book.h"
#include "tests/support/test_main.h"
#include "tests/unit/chain/chain_fixture.h"

using namespace neuroshard;
using namespace neuroshard::rounds;
using chain::Verdict;

namespace {

class CountingChecks final : public chain::SignatureChecks {
 public:
  bool attestation(const chain::Attestation& attestation, const crypto::PublicKey& node,
                   const Hash256& network) override {
    ++count;
    return chain::attestation_holds(attestation, node, network);
  }
  int count = 0;
};

// Two founders that hold row 0, one that holds row 1, and a member that does not vote.
struct Bench {
  Bench() {
    nodes = chain.add_nodes(4);
    for (std::size_t i = 0; i < 3; ++i) chain.set_rows(nodes[i], chain::RowSet::of({i < 2 ? 0u : 1u}));
    if (!chain.begin({nodes[0], nodes[1], nodes[2]}).ok() || !chain.join(nodes[3])) qFatal("no chain");
    tip.block = chain.blocks().back();
    tip.opening = chain.registry().opening(chain.hash());
    tip.registry = chain.registry_ptr();
    tip.committee = chain.committee();
    book.open(tip);
  }
  chain::Attestation attestation(std::size_t node, std::uint32_t row, std::uint8_t anchor) const {
    chain::Attestation made;
    made.opening = tip.opening;
    made.round = tip.registry->round() + 1;
    made.voter = chain.number(nodes[node]);
    made.rows.resize(1);
    made.rows[0].row = row;
    made.rows[0].anchor.fill(anchor);
    return sign(std::move(made), node);
  }
  chain::Attestation sign(chain::Attestation made, std::size_t node) const {
    chain::sign_attestation(made, chain.key(nodes[node]), chain.rules().network);
    return made;
  }
  chain::testing::ChainFixture chain;
  std::vector<std::size_t> nodes;
  chain::ChainTip tip;
  CountingChecks checks;
  AttestationBook book{chain.rules(), checks};
};

class TestAttestationBook : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void cheap_checks_come_first();
  void a_signature_is_checked_once();
  void two_claims_contradict_each_other();
  void a_round_forgets_the_one_before();
};

void TestAttestationBook::cheap_checks_come_first() {
  Bench bench;
  const auto take = [&](chain::Attestation made, std::size_t node) {
    return bench.book.take(bench.sign(std::move(made), node), bench.tip);
  };
  chain::Attestation other = bench.attestation(0, 0, 1);
  other.round += 1;
  QCOMPARE(take(other, 0), Verdict::Later);
  other.round -= 2;
  QCOMPARE(take(other, 0), Verdict::Past);
  other = bench.attestation(0, 0, 1);
  other.opening[0] ^= 1;
  QCOMPARE(take(other, 0), Verdict::OtherHistory);
  QCOMPARE(take(bench.attestation(3, 0, 1), 3), Verdict::NotMember);
  QCOMPARE(take(bench.attestation(0, 1, 1), 0), Verdict::Inadmissible);  // a row that it does not hold
  QCOMPARE(take(bench.attestation(0, 9, 1), 0), Verdict::Inadmissible);
  QCOMPARE(bench.checks.count, 0);
  QCOMPARE(take(bench.attestation(0, 0, 1), 1), Verdict::BadSignature);
  QCOMPARE(bench.checks.count, 1);
  QVERIFY(!bench.book.result(0, bench.tip, false).has_value());
}

void TestAttestationBook::a_signature_is_checked_once() {
  Bench bench;
  QCOMPARE(bench.book.take(bench.attestation(0, 0, 1), bench.tip), Verdict::Taken);
  for (int i = 0; i < 3; ++i)
    QCOMPARE(bench.book.take(bench.attestation(0, 0, 1), bench.tip), Verdict::Known);
  QCOMPARE(bench.checks.count, 1);
  QCOMPARE(bench.book.rows_of(bench.chain.number(bench.nodes[0])), std::size_t{1});
  QVERIFY(!bench.book.result(0, bench.tip, false).has_value());
  QCOMPARE(bench.book.result(0, bench.tip, true), bench.attestation(0, 0, 1).rows[0]);
  QCOMPARE(bench.book.take(bench.attestation(1, 0, 1), bench.tip), Verdict::Taken);
  QCOMPARE(bench.book.result(0, bench.tip, false), bench.attestation(0, 0, 1).rows[0]);
  QVERIFY2(!bench.book.result(1, bench.tip, false).has_value(), "nobody attested row 1");
}

// However often a voter changes its mind, it costs two checks.
void TestAttestationBook::two_claims_contradict_each_other() {
  Bench bench;
  QCOMPARE(bench.book.take(bench.attestation(0, 0, 1), bench.tip), Verdict::Taken);
  QCOMPARE(bench.book.take(bench.attestation(0, 0, 2), bench.tip), Verdict::Taken);
  for (std::uint8_t anchor = 3; anchor < 10; ++anchor)
    QCOMPARE(bench.book.take(bench.attestation(0, 0, anchor), bench.tip), Verdict::Known);
  QCOMPARE(bench.checks.count, 2);
  QVERIFY(bench.book.result(0, bench.tip, false)->carried);
}

void TestAttestationBook::a_round_forgets_the_one_before() {
  Bench bench;
  QCOMPARE(bench.book.take(bench.attestation(2, 1, 1), bench.tip), Verdict::Taken);
  QVERIFY(bench.book.result(1, bench.tip, false).has_value());
  bench.book.open(bench.tip);
  QVERIFY(!bench.book.result(1, bench.tip, false).has_value());
}

}  // namespace

NS_TEST(TestAttestationBook)
#include "test_attestation_book.moc"
