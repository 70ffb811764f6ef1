// The result that a node proposes and votes for, row by row: by its own computation, by what the holders of the row attest, and by
// how long it has waited.
#include <QtTest>

#include "tests/support/test_main.h"
#include "tests/unit/rounds/outcome_judge.h"

using namespace neuroshard;
using namespace neuroshard::rounds;
using chain::RowResult;
using chain::RowSet;
using chain::Verdict;
using Finding = RowOutcomes::Finding;

namespace {

test::ChainRoundOptions of_holders(std::size_t count, std::uint32_t rows = 2) {
  test::ChainRoundOptions options;
  options.holders = count;
  options.others = 2;
  options.values = 5000;
  options.rows = rows;
  return options;
}

// A round of row 0, and somebody who judges it. Claims are letters: R the right result, W a wrong one, - carried, . nothing yet.
struct RowJudge : test::OutcomeJudge<test::ChainRound> {
  RowJudge(const test::ChainRound& of, RowSet held)
      : OutcomeJudge(of, *of.round, of.opening, std::move(held)) {}
  RowResult claim(char letter) const {
    if (letter == '-') return chain::carried_row(0);
    RowResult result = network.round->attested;
    if (letter == 'W') result.anchor[0] ^= 1;
    return result;
  }
  // One letter for each wallet that holds the row; ! contradicts itself.
  void take_claims(const QString& wallets) {
    for (int i = 0; i < wallets.size(); ++i) {
      const char says = wallets[i].toLatin1();
      const auto holder = static_cast<std::size_t>(i);
      if (says == '.') continue;
      take(network.attestation(holder, claim(says == '!' ? 'R' : says)));
      if (says == '!') take(network.attestation(holder, claim('W')));
    }
  }
  void compute_right() {
    node.take_all(network);
    node.hold(0, network.chain.registry().rows()[0], network.round->before);
    compute();
    if (node.computed.result(network.tip(), 0, 0) != network.round->attested) qFatal("another result");
  }
  // Of row 0 in what it proposes.
  char proposed() const {
    const auto section = outcomes.section(network.tip());
    if (!section) return '.';
    if (section->rows.size() != 2 || section->rows[1] != chain::carried_row(1)) return '?';
    for (const char letter : {'R', 'W', '-'})
      if (section->rows[0] == claim(letter)) return letter;
    return '?';
  }
  Finding examine_claim(char letter, bool binding) const {
    return examine({claim(letter), chain::carried_row(1)}, binding);
  }
};

}  // namespace

class TestRowOutcomes : public QObject {
  Q_OBJECT

  const RowSet row_0 = RowSet::of({0}), row_1 = RowSet::of({1});

 private Q_SLOTS:
  void wallets_that_hold_a_row_decide_it_for_others_data() {
    QTest::addColumn<char>("soon");
    QTest::addColumn<char>("late");
    const auto row = [](const char* wallets, char soon, char late) {
      QTest::newRow(wallets) << soon << late;
    };
    // Up to four: all that say something agree, and the silent ones are waited for.
    row("R", 'R', 'R');
    row(".", '.', '-');
    row("-", '-', '-');
    row("R.", '.', 'R');
    row("RW", '-', '-');
    row("RRR.", '.', 'R');
    row("RRRW", '-', '-');
    row("WR..", '-', '-');
    row("RRR!", '-', '-');
    row("R-", '-', '-');
    // From five on: more than half of all decide at once.
    row("RRR..", 'R', 'R');
    row("RRRWW", 'R', 'R');
    row("WWWRR", 'W', 'W');
    row("RR...", '.', '-');
    row("RRWW.", '.', '-');
    row("RRWW-", '-', '-');
    row("RRR!-", 'R', 'R');
    row("RR!..", '.', '-');
    row("RRRWWW", '-', '-');
  }
  void wallets_that_hold_a_row_decide_it_for_others() {
    QFETCH(char, soon);
    QFETCH(char, late);
    const QString wallets = QTest::currentDataTag();
    const test::ChainRound network(of_holders(static_cast<std::size_t>(wallets.size())));
    RowJudge judge(network, row_1);
    judge.take_claims(wallets);
    QCOMPARE(judge.proposed(), soon);
    judge.late = {1};
    QCOMPARE(judge.proposed(), soon);
    judge.late = {0};
    QCOMPARE(judge.proposed(), late);
  }

  // It waits for its row's other holders, and votes for no result that differs from its own.
  void a_holder_proposes_what_it_computed_and_others_attest() {
    const test::ChainRound network(of_holders(5));
    for (const auto& [claims, soon, late] : {std::tuple{".....", '.', '-'},
                                             {"RR...", '.', '-'},
                                             {"RRR..", 'R', 'R'},
                                             {"WWWRR", '-', '-'},
                                             {"WWW..", '-', '-'},
                                             {"---RR", '-', '-'}}) {
      RowJudge judge(network, row_0);
      judge.compute_right();
      judge.take_claims(claims);
      QCOMPARE(judge.proposed(), soon);
      judge.late = {0};
      QCOMPARE(judge.proposed(), late);
    }
    // One that did not compute the row believes the others.
    RowJudge idle(network, row_0);
    idle.take_claims("WWWRR");
    QCOMPARE(idle.proposed(), 'W');
  }

  void a_proposal_with_another_result_is_wrong_data() {
    QTest::addColumn<QString>("claims");
    QTest::addColumn<char>("proposal");
    QTest::addColumn<bool>("computed");
    QTest::addColumn<Finding>("soon");
    QTest::addColumn<Finding>("late");
    const auto row = [](const char* claims, char proposal, bool computed, Finding soon, Finding late) {
      const std::string name = std::string(claims) + " " + proposal + (computed ? ", computed" : "");
      QTest::newRow(name.c_str()) << QString(claims) << proposal << computed << soon << late;
    };
    row("RRR..", 'R', false, Finding::Right, Finding::Right);
    row("RRR..", 'W', false, Finding::Wrong, Finding::Wrong);
    row("RR...", 'R', false, Finding::Wait, Finding::Wrong);
    row(".....", 'R', true, Finding::Wait, Finding::Wrong);
    row("WWW..", 'W', false, Finding::Right, Finding::Right);
    row("WWW..", 'W', true, Finding::Wrong, Finding::Wrong);
    row("WWW..", 'R', true, Finding::Wrong, Finding::Wrong);
    row("RRR..", 'R', true, Finding::Right, Finding::Right);
  }
  void a_proposal_with_another_result_is_wrong() {
    QFETCH(QString, claims);
    QFETCH(char, proposal);
    QFETCH(bool, computed);
    QFETCH(Finding, soon);
    QFETCH(Finding, late);
    const test::ChainRound network(of_holders(5));
    RowJudge judge(network, row_0);
    if (computed) judge.compute_right();
    judge.take_claims(claims);
    for (const bool binding : {true, false}) {
      judge.late.clear();
      QCOMPARE(judge.examine_claim(proposal, binding), soon);
      judge.late = {0};
      QCOMPARE(judge.examine_claim(proposal, binding), late);
    }
  }

  void a_row_is_carried_needlessly_only_where_that_does_not_bind() {
    const test::ChainRound network(of_holders(3));
    for (const auto& [claims, soon, late] : {std::tuple{"RR.", Finding::Wait, Finding::Wrong},
                                             {"...", Finding::Wait, Finding::Right},
                                             {"RRR", Finding::Wrong, Finding::Wrong},
                                             {"RWR", Finding::Right, Finding::Right},
                                             {"---", Finding::Right, Finding::Right}}) {
      RowJudge judge(network, row_1);
      judge.take_claims(claims);
      QCOMPARE(judge.examine_claim('-', true), soon);
      QCOMPARE(judge.examine_claim('-', false), Finding::Right);
      judge.late = {0};
      QCOMPARE(judge.examine_claim('-', true), late);
      QCOMPARE(judge.examine_claim('-', false), Finding::Right);
    }
  }

  // Nobody contributed to row 1.
  void a_row_without_contributors_is_carried_at_once_whatever_is_attested() {
    const test::ChainRound network(of_holders(1));
    RowJudge judge(network, row_1);
    judge.take_claims("R");
    QVERIFY(!judge.attest(network.others[0]));
    chain::Attestation lie = network.attestation(0, network.round->attested);
    lie.voter = network.chain.number(network.others[0]);
    lie.rows[0].row = 1;
    chain::sign_attestation(lie, network.chain.key(network.others[0]), network.chain.rules().network);
    judge.take(lie);
    QCOMPARE(judge.proposed(), 'R');
    QCOMPARE(judge.examine_claim('R', true), Finding::Right);
    QCOMPARE(judge.examine({network.round->attested, lie.rows[0]}, true), Finding::Wrong);
  }

  void a_voter_attests_its_own_result_once() {
    const test::ChainRound network(of_holders(3));
    RowJudge judge(network, row_0);
    QVERIFY(!judge.attest(network.holders[1]));
    judge.compute_right();
    // By a voter that is registered with another row, and by nobody of the committee.
    QVERIFY(!judge.attest(network.others[0]));
    QVERIFY(!judge.outcomes.attest(network.tip(), test::key_numbered(999)));
    const auto made = judge.attest(network.holders[1]);
    QCOMPARE(made, network.attestation(1, network.round->attested));
    QCOMPARE(judge.outcomes.attestations().attested(0).size(), std::size_t{1});
    QVERIFY(!judge.attest(network.holders[1]));
    // Its voice counts for itself, too.
    judge.take_claims("R.R");
    QCOMPARE(judge.proposed(), 'R');
  }

  void an_attestation_of_a_peer_is_judged_before_it_counts() {
    const test::ChainRound network(of_holders(1));
    RowJudge judge(network, row_1);
    Bytes bytes = chain::encode_attestation(network.attestation(0, network.round->attested));
    const auto take = [&](ByteSpan sent) { return judge.outcomes.take(sent, network.tip()); };
    QCOMPARE(take(ByteSpan(bytes).first(bytes.size() - 1)), Verdict::Malformed);
    bytes.back() ^= 1;
    QCOMPARE(take(bytes), Verdict::BadSignature);
    QCOMPARE(judge.proposed(), '.');
    bytes.back() ^= 1;
    QCOMPARE(take(bytes), Verdict::Taken);
    QCOMPARE(take(bytes), Verdict::Known);
    QCOMPARE(judge.proposed(), 'R');
  }

  void where_all_hold_the_rows_each_believes_itself_only() {
    const test::ChainRound network(of_holders(2, 1));
    RowJudge judge(network, {});
    const RowResult right = network.round->attested;
    QCOMPARE(judge.outcomes.take(chain::encode_attestation(network.attestation(0, right)), network.tip()),
             Verdict::Inadmissible);
    const auto section = [&] { return judge.outcomes.section(network.tip()); };
    QVERIFY(!section());
    QCOMPARE(judge.examine({right}, true), Finding::Wait);
    QCOMPARE(judge.examine({chain::carried_row(0)}, true), Finding::Wait);
    judge.late = {0};
    QCOMPARE(section()->rows, std::vector{chain::carried_row(0)});
    QCOMPARE(judge.examine({right}, true), Finding::Wait);  // it may still compute it
    QCOMPARE(judge.examine({chain::carried_row(0)}, true), Finding::Right);
    judge.node.take_all(network);
    judge.node.hold(0, network.chain.registry().rows()[0], network.round->before);
    judge.compute();
    const RowResult own = *judge.node.computed.result(network.tip(), 0, 0);
    QCOMPARE(own.anchor, right.anchor);
    QCOMPARE(section()->rows, std::vector{own});
    QVERIFY(!judge.attest(network.holders[0]));
    QCOMPARE(judge.examine({own}, true), Finding::Right);
    QCOMPARE(judge.examine({chain::carried_row(0)}, true), Finding::Wrong);
    QCOMPARE(judge.examine({chain::carried_row(0)}, false), Finding::Right);
  }

  void before_the_close_nothing_is_proposed() {
    const test::ChainRound network(of_holders(1));
    RowJudge judge(network, row_1);
    judge.late = {0, 1};
    QVERIFY(!judge.outcomes.section(network.opening));
  }
};

NS_TEST(TestRowOutcomes)
#include "test_row_outcomes.moc"
