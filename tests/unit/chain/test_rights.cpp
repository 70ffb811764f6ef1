// The contributors of a row, and the members that a close must name.
#include <QtTest>

#include <bit>
#include <limits>
#include <set>

#include "tests/support/test_main.h"
#include "tests/unit/chain/works.h"

using namespace neuroshard;         // NOLINT
using namespace neuroshard::chain;  // NOLINT
using neuroshard::chain::testing::ChainFixture;
using neuroshard::chain::testing::joined;
using neuroshard::chain::testing::Received;
using neuroshard::chain::testing::small_rules;
using neuroshard::chain::testing::works_of;

namespace {

using Numbers = std::vector<std::uint32_t>;

Numbers row_of(const ChainFixture& chain, const CloseSection& close, std::size_t row = 0) {
  return round_contributors(chain.rules(), chain.registry(), *chain.committee(), close).at(row);
}

}  // namespace

class TestChainRights : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void a_payload_counts_when_most_units_have_it();
  void holders_of_a_row_decide_who_contributes();
  void candidates_take_a_quarter_of_a_row();
  void the_beacon_draws_the_candidates();
  void vouched_candidates_count_while_few_voters_do();
  void only_nodes_with_a_share_count_as_voters();
  void nobody_in_a_third_of_the_vectors_is_left_out();
  void norms_are_limited_by_the_last_eight();
};

void TestChainRights::a_payload_counts_when_most_units_have_it() {
  ChainFixture chain;
  const auto nodes = chain.add_nodes(4);
  QVERIFY(chain.begin(nodes).ok());
  Received received;
  std::size_t holders = 2;  // of node 3's payload of row 1
  received.payload = [&](std::size_t voter, std::size_t node, std::size_t row) {
    return node != nodes[3] || row == 0 || voter < nodes[0] + holders;
  };
  CloseSection close = chain.close(works_of(nodes), received);
  QCOMPARE(row_of(chain, close, 0).size(), std::size_t{4});
  QCOMPARE(row_of(chain, close, 1).size(), std::size_t{3});  // half is not enough
  holders = 3;
  close = chain.close(works_of(nodes), received);
  QCOMPARE(row_of(chain, close, 1).size(), std::size_t{4});
  // More than half of the active units, not of the vectors.
  holders = 2;
  close = chain.close(works_of(nodes), received, {{nodes[0], nodes[1], nodes[2]}});
  QCOMPARE(row_of(chain, close, 1).size(), std::size_t{3});
  QVERIFY(chain.say(nodes[2], Away{}));
  close = chain.close(works_of(nodes), received);
  QCOMPARE(row_of(chain, close, 1).size(), std::size_t{4});
  QCOMPARE(round_contributors(chain.rules(), chain.registry(), *chain.committee(), close),
           (std::vector<Numbers>{row_of(chain, close, 0), row_of(chain, close, 1)}));
  // No tokens, no contribution.
  close = chain.close({{nodes[0]}, {nodes[1], 0}});
  QCOMPARE(row_of(chain, close), Numbers{chain.number(nodes[0])});
}

// Two hold row 0, two hold row 1, one holds both.
void TestChainRights::holders_of_a_row_decide_who_contributes() {
  ChainFixture chain;
  const auto nodes = chain.add_nodes(5);
  for (std::size_t i = 0; i < 4; ++i) chain.set_rows(nodes[i], RowSet::of({i < 2 ? 0u : 1u}));
  QVERIFY(chain.begin(nodes).ok());
  const auto numbers = [&](std::vector<std::size_t> of) {
    Numbers all;
    for (const std::size_t node : of) all.push_back(chain.number(nodes[node]));
    std::sort(all.begin(), all.end());
    return all;
  };
  CloseSection close = chain.close(works_of(nodes));
  QCOMPARE(row_of(chain, close, 0), numbers({0, 1, 4}));
  QCOMPARE(row_of(chain, close, 1), numbers({2, 3, 4}));
  QCOMPARE(chain.committee()->units_holding(0), std::uint64_t{3} * units_per_wallet);
  // A vector's bits for rows that its voter does not hold count nothing.
  Received received;
  std::set<std::size_t> have;  // nodes that have node 1's payload of row 0
  received.payload = [&](std::size_t voter, std::size_t node, std::size_t row) {
    return node != nodes[1] || row != 0 || have.count(voter) != 0;
  };
  have = {nodes[1], nodes[2], nodes[3]};
  QCOMPARE(row_of(chain, chain.close(works_of(nodes), received), 0), numbers({0, 4}));
  have = {nodes[1], nodes[0]};
  QCOMPARE(row_of(chain, chain.close(works_of(nodes), received), 0), numbers({0, 1, 4}));
  // Of the holders that are active.
  have = {nodes[1]};
  QCOMPARE(row_of(chain, chain.close(works_of(nodes), received), 0), numbers({0, 4}));
  QVERIFY(chain.say(nodes[0], Away{}));
  QVERIFY(chain.say(nodes[4], Away{}));
  QCOMPARE(row_of(chain, chain.close(works_of({nodes[1], nodes[2], nodes[3]}), received), 0), numbers({1}));
  // Without any of them nobody contributes to the row.
  QVERIFY(chain.say(nodes[1], Away{}));
  close = chain.close(works_of({nodes[2], nodes[3]}));
  QCOMPARE(row_of(chain, close, 0), Numbers{});
  QCOMPARE(row_of(chain, close, 1), numbers({2, 3}));
}

void TestChainRights::candidates_take_a_quarter_of_a_row() {
  ChainFixture chain(small_rules(VotersMode::Founders));
  const auto founders = chain.add_nodes(9);
  const auto candidates = chain.add_nodes(5);
  QVERIFY(chain.begin(founders).ok());
  for (const std::size_t node : candidates) QVERIFY(chain.join(node));
  QVERIFY(chain.round_of(founders));
  const auto taken = [&](std::size_t voters) {
    std::vector<std::size_t> nodes(founders.begin(), founders.begin() + static_cast<std::ptrdiff_t>(voters));
    return row_of(chain, chain.close(works_of(joined(nodes, candidates)))).size() - voters;
  };
  QCOMPARE(taken(3), std::size_t{0});
  QCOMPARE(taken(4), std::size_t{1});
  QCOMPARE(taken(7), std::size_t{1});
  QCOMPARE(taken(8), std::size_t{2});
  QCOMPARE(taken(9), std::size_t{2});
}

void TestChainRights::the_beacon_draws_the_candidates() {
  ChainFixture chain(small_rules(VotersMode::Founders));
  const auto founders = chain.add_nodes(4);
  const auto candidates = chain.add_nodes(6);
  QVERIFY(chain.begin(founders).ok());
  for (const std::size_t node : candidates) QVERIFY(chain.join(node));
  QVERIFY(chain.round_of(founders));
  const auto nodes = joined(founders, candidates);
  std::set<std::uint32_t> drawn;
  for (int round = 0; round < 16; ++round) {
    const CloseSection close = chain.close(works_of(nodes));
    const Numbers row = row_of(chain, close);
    QCOMPARE(row, row_of(chain, close));
    QCOMPARE(row, row_of(chain, close, 1));
    QCOMPARE(row.size(), std::size_t{5});
    drawn.insert(row.back());  // candidates have the higher numbers
    BlockBody body;
    body.close = close;
    QVERIFY(chain.append(body).ok());
    QCOMPARE(chain.registry().closed()->contributors[0], row);
    QVERIFY(beacon_after(chain.registry(), *chain.committee(), close) != chain.registry().beacon());
    body = {};
    body.result = chain.result();
    QVERIFY(chain.append(body).ok());
  }
  QVERIFY(drawn.size() > 2);
}

void TestChainRights::vouched_candidates_count_while_few_voters_do() {
  ChainFixture chain;
  const auto founders = chain.add_nodes(4);
  QVERIFY(chain.begin(founders).ok());
  const auto vouched = chain.add_nodes(2);
  const std::size_t plain = chain.add_node();
  for (std::size_t i = 0; i < 2; ++i)
    QVERIFY(chain.say(vouched[i], chain.registration(vouched[i], founders[i], 1)));
  QVERIFY(chain.join(plain));
  QVERIFY(chain.round_of(founders));
  const auto row = [&](std::size_t voters) {
    std::vector<std::size_t> nodes(founders.begin(), founders.begin() + static_cast<std::ptrdiff_t>(voters));
    nodes = joined(joined(nodes, vouched), {plain});
    return row_of(chain, chain.close(works_of(nodes)));
  };
  QCOMPARE(row(3).size(), std::size_t{5});  // both vouched ones, not the other
  const Numbers few = row(3);
  QVERIFY(std::find(few.begin(), few.end(), chain.number(plain)) == few.end());
  QCOMPARE(row(0).size(), std::size_t{2});
  QCOMPARE(row(4).size(), std::size_t{5});  // one of the three by lot
}

void TestChainRights::only_nodes_with_a_share_count_as_voters() {
  ChainFixture chain(small_rules(VotersMode::Founders));
  const auto founders = chain.add_nodes(4);
  QVERIFY(chain.begin(founders).ok());
  std::vector<std::size_t> more;
  for (int i = 0; i < 6; ++i) {
    more.push_back(chain.add_node_of(chain.wallet_index(founders[0])));
    QVERIFY(chain.join(more.back()));
  }
  QVERIFY(chain.round_of(founders));
  const auto nodes = joined(founders, more);
  // Nodes without a certified contribution are candidates, whoever owns them.
  QCOMPARE(row_of(chain, chain.close(works_of(nodes))).size(), std::size_t{5});
  QVERIFY(chain.round(works_of(nodes)));
  // Four nodes of the wallet have units; the others draw lots for the one place.
  QCOMPARE(row_of(chain, chain.close(works_of(nodes))).size(), std::size_t{4 + 3 + 1});
}

void TestChainRights::nobody_in_a_third_of_the_vectors_is_left_out() {
  ChainFixture chain;
  const auto nodes = chain.add_nodes(6);
  QVERIFY(chain.begin(nodes).ok());
  Received received;
  std::size_t knowing = 2;
  received.lists = [&](std::size_t voter, std::size_t node) {
    return node != nodes[5] || voter < nodes[0] + knowing;
  };
  const auto due = [&] {
    return due_contributors(chain.close(works_of(nodes), received).vectors, *chain.committee());
  };
  QCOMPARE(due().size(), std::size_t{5});  // a third exactly
  knowing = 3;
  QCOMPARE(due().size(), std::size_t{6});
  const Numbers all = due();
  QVERIFY(std::is_sorted(all.begin(), all.end()));
}

// By eight certified norms, whatever their order; a row that was carried since may be as much longer.
void TestChainRights::norms_are_limited_by_the_last_eight() {
  for (const std::uint32_t fragments : {1u, 2u}) {
    ChainRules rules = small_rules(VotersMode::Invited, 2);
    rules.fragments = fragments;
    ChainFixture chain(rules);
    const auto nodes = chain.add_nodes(3);
    QVERIFY(chain.begin(nodes).ok());
    const auto most = [&](std::uint64_t round) {
      return most_row_norm(chain.rules(), chain.registry(), 1, round);
    };
    const auto round_with = [&](double norm) {
      BlockBody closing, result;
      closing.close = chain.close(works_of(nodes));
      QVERIFY(chain.append(closing).ok());
      result.result = chain.result(std::bit_cast<std::uint64_t>(norm));
      QVERIFY(chain.append(result).ok());
    };
    // The first one is forgotten.
    for (const double norm : {1e9, 5.0, 1e30, 3.0, 0.25, 7.0, 1e-30, 4.0, 6.0}) {
      QVERIFY(!most(chain.registry().round() + 1) || norm == 6.0);
      for (std::uint32_t i = 0; i < fragments; ++i) round_with(norm);
    }
    const std::uint64_t changed = chain.registry().rows()[1].changed_round;
    QCOMPARE(most(changed + fragments), std::optional(2 * 4.0));
    QCOMPARE(most(changed + 3 * fragments), std::optional(3 * 2 * 4.0));
    QCOMPARE(most(changed), std::optional(2 * 4.0));
    QVERIFY(!most_row_norm(chain.rules(), chain.registry(), 2, changed));  // no such row
    for (std::uint32_t i = 0; i < 8 * fragments; ++i) round_with(std::numeric_limits<double>::max());
    QCOMPARE(most(chain.registry().round() + fragments), std::optional(std::numeric_limits<double>::max()));
  }
}

NS_TEST(TestChainRights)
#include "test_rights.moc"
