// The results that a node proposes and votes for in a round that changes the size of the model.
#include <QtTest>

#include "tests/support/test_main.h"
#include "tests/unit/rounds/outcome_judge.h"

using namespace neuroshard;
using namespace neuroshard::rounds;
using chain::RowResult;
using chain::RowSet;
using Finding = RowOutcomes::Finding;

namespace {

struct SizeJudge : test::OutcomeJudge<test::ResizedRound> {
  explicit SizeJudge(const test::ResizedRound& of, RowSet held = {})
      : OutcomeJudge(of, of.round, of.tip(), std::move(held)) {}
  void hold(std::uint32_t row) { node.hold(row, network.record(row), network.before); }
  std::vector<RowResult> right() const { return {network.right(0), network.right(1)}; }
  static std::vector<RowResult> carried() { return {chain::carried_row(0), chain::carried_row(1)}; }
  std::optional<std::vector<RowResult>> proposed() const {
    const auto section = outcomes.section(network.tip());
    return section ? std::optional(section->rows) : std::nullopt;
  }
};

}  // namespace

class TestResizedOutcomes : public QObject {
  Q_OBJECT

  const RowSet row_0 = RowSet::of({0});

 private Q_SLOTS:
  void a_holder_attests_more_rows_as_it_computes_them() {
    const test::ResizedRound network;
    SizeJudge judge(network);
    judge.hold(0);
    judge.compute();
    QCOMPARE(judge.attest(network.members[2]), network.attestation(2, {network.right(0)}));
    QVERIFY(!judge.attest(network.members[2]));
    judge.hold(1);
    judge.compute();
    QCOMPARE(judge.attest(network.members[2]), network.attestation(2, judge.right()));
    QVERIFY(!judge.attest(network.members[2]));
    // A program that came back for row 0, while the chain still names both rows.
    SizeJudge moved(network, row_0);
    moved.hold(0);
    moved.hold(1);
    moved.compute();
    QCOMPARE(moved.attest(network.members[2]), network.attestation(2, {network.right(0)}));
    // It believes others about the row that it gave up.
    RowResult other = network.right(1);
    other.anchor[0] ^= 1;
    for (std::size_t member = 0; member < 4; ++member)
      if (member != 2) moved.take(network.attestation(member, {network.right(0), other}));
    moved.late = {1};
    QCOMPARE(moved.proposed(), std::vector({network.right(0), other}));
  }

  void a_voter_attests_the_rows_that_the_chain_knows_it_for() {
    const test::ResizedRound network(1, row_0);
    SizeJudge judge(network);
    judge.hold(0);
    judge.hold(1);
    judge.compute();
    QCOMPARE(judge.attest(network.members[3]), network.attestation(3, {network.right(0)}));
    QCOMPARE(judge.attest(network.members[2]), network.attestation(2, judge.right()));
  }

  void a_size_changes_in_all_rows_or_in_none() {
    const test::ResizedRound network;
    RowResult other = network.right(1);
    other.anchor[0] ^= 1;
    SizeJudge agreed(network), contradicted(network), silent(network);
    for (std::size_t member = 0; member < 4; ++member) {
      agreed.take(network.attestation(member, agreed.right()));
      contradicted.take(
          network.attestation(member, {network.right(0), member == 3 ? other : network.right(1)}));
      silent.take(network.attestation(member, {network.right(0)}));
    }
    QCOMPARE(agreed.proposed(), agreed.right());
    QCOMPARE(contradicted.proposed(), SizeJudge::carried());
    QVERIFY(!silent.proposed());
    silent.late = {1};
    QCOMPARE(silent.proposed(), SizeJudge::carried());
    // Each judges the others' proposals by this.
    QCOMPARE(agreed.examine(agreed.right(), true), Finding::Right);
    QCOMPARE(agreed.examine({network.right(0), other}, true), Finding::Wrong);
    QCOMPARE(contradicted.examine(agreed.right(), true), Finding::Wrong);
    SizeJudge early(network);
    QCOMPARE(early.examine(agreed.right(), true), Finding::Wait);
  }

  void a_change_is_given_up_only_because_of_a_row() {
    const test::ResizedRound network;
    RowResult other = network.right(1);
    other.anchor[0] ^= 1;
    SizeJudge judge(network);
    const auto carried = [&](bool binding) { return judge.examine(SizeJudge::carried(), binding); };
    QCOMPARE(carried(true), Finding::Wait);
    QCOMPARE(carried(false), Finding::Right);
    for (std::size_t member = 0; member < 4; ++member)
      judge.take(network.attestation(member, {network.right(0)}));
    QCOMPARE(carried(true), Finding::Wait);
    judge.late = {1};
    QCOMPARE(carried(true), Finding::Right);
    judge.late.clear();
    for (std::size_t member = 0; member < 4; ++member) judge.take(network.attestation(member, judge.right()));
    QCOMPARE(carried(true), Finding::Wrong);
    QCOMPARE(carried(false), Finding::Right);
    judge.take(network.attestation(0, {network.right(0), other}));
    QCOMPARE(carried(true), Finding::Right);
  }

  // Else voters that don't hold the row would certify what follows from the wrong result, and then no row returns.
  void a_change_is_given_up_when_a_row_is_taken_back() {
    test::ResizedRound network;
    SizeJudge holder(network, row_0), other(network, RowSet::of({1}));
    for (SizeJudge* judge : {&holder, &other}) {
      for (std::size_t member = 0; member < 4; ++member)
        judge->take(network.attestation(member, judge->right()));
      QCOMPARE(judge->proposed(), judge->right());
    }
    network.take_back(0);
    for (const SizeJudge* judge : {&holder, &other}) {
      QCOMPARE(judge->proposed(), SizeJudge::carried());
      QCOMPARE(judge->examine(SizeJudge::carried(), true), Finding::Right);
      QCOMPARE(judge->examine(judge->right(), false), Finding::Wrong);
    }
  }
};

NS_TEST(TestResizedOutcomes)
#include "test_resized_outcomes.moc"
