// The contributors of a row, the members that a close must name, and the wallets that become voters.
#include <QtTest>

#include <bit>
#include <limits>
#include <set>

#include "tests/support/test_main.h"
#include "tests/unit/chain/chain_fixture.h"

using namespace neuroshard;
using namespace neuroshard::chain;
using neuroshard::chain::testing::ChainFixture;
using neuroshard::chain::testing::NoChecks;
using neuroshard::chain::testing::Received;
using neuroshard::chain::testing::small_rules;
using neuroshard::chain::testing::Work;

namespace {

using Numbers = std::vector<std::uint32_t>;

Numbers row_of(const ChainFixture& chain, const CloseSection& close, std::size_t row = 0) {
  return round_contributors(chain.rules(), chain.registry(), *chain.committee(), close).at(row);
}

std::vector<Work> works_of(const std::vector<std::size_t>& nodes) {
  std::vector<Work> works;
  for (const std::size_t node : nodes) works.push_back({node});
  return works;
}

std::vector<std::size_t> joined(std::vector<std::size_t> nodes, const std::vector<std::size_t>& more) {
  nodes.insert(nodes.end(), more.begin(), more.end());
  return nodes;
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
  void invited_wallets_become_voters();
  void founders_stay_among_themselves();
  void open_networks_admit_by_work();
  void vouched_wallets_come_first_then_tokens();
  void small_contributions_do_not_qualify();
  void a_wallet_qualifies_once_a_round();
  void payloads_that_nobody_has_do_not_count();
  void one_in_sixteen_is_admitted_a_round();
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

void TestChainRights::invited_wallets_become_voters() {
  ChainFixture chain;
  const auto founders = chain.add_nodes(2);
  QVERIFY(chain.begin(founders).ok());
  const std::size_t guest = chain.add_node(), stranger = chain.add_node();
  QVERIFY(chain.say(guest, chain.registration(guest, founders[0], 1)));
  QVERIFY(chain.join(stranger));
  QVERIFY(chain.round_of(founders));
  AdmissionProgress progress = admission_progress(chain.rules(), chain.registry(), *chain.wallet(guest));
  QCOMPARE(progress.needed, 1u);
  QCOMPARE(progress.contributions, 0u);
  QVERIFY(!progress.needs_voucher);
  QVERIFY(admission_progress(chain.rules(), chain.registry(), *chain.wallet(stranger)).needs_voucher);
  // Below four voters one contribution is enough; the block with the result admits.
  const auto all = joined(founders, {guest, stranger});
  BlockBody body;
  body.close = chain.close(works_of(all));
  QVERIFY(chain.append(body).ok());
  QVERIFY(!chain.is_voter(guest));
  body = {};
  body.result = chain.result();
  QVERIFY(chain.append(body).ok());
  QVERIFY(chain.is_voter(guest));
  QCOMPARE(chain.wallet(guest)->admitted_height, chain.registry().height());
  QCOMPARE(chain.units(guest), 12u);
  for (int round = 0; round < 4; ++round) QVERIFY(chain.round_of(all));
  QVERIFY(!chain.is_voter(stranger));
  // From four voters on it takes two qualifying contributions here.
  const std::size_t fourth = chain.add_node(), fifth = chain.add_node();
  QVERIFY(chain.say(fourth, chain.registration(fourth, founders[0], 2)));
  QVERIFY(chain.say(fifth, chain.registration(fifth, founders[1], 1)));
  QVERIFY(chain.round_of(all));
  QVERIFY(chain.round_of(joined(all, {fourth})));
  QVERIFY(chain.is_voter(fourth));
  QVERIFY(chain.round_of(joined(all, {fifth})));
  QVERIFY(!chain.is_voter(fifth));
  QCOMPARE(admission_progress(chain.rules(), chain.registry(), *chain.wallet(fifth)).contributions, 1u);
  QVERIFY(chain.round_of(joined(all, {fifth})));
  QVERIFY(chain.is_voter(fifth));
}

void TestChainRights::founders_stay_among_themselves() {
  ChainFixture chain(small_rules(VotersMode::Founders));
  const auto founders = chain.add_nodes(2);
  QVERIFY(chain.begin(founders).ok());
  const std::size_t node = chain.add_node();
  QVERIFY(chain.join(node));
  QVERIFY(chain.round_of(founders));
  for (int round = 0; round < 6; ++round) QVERIFY(chain.round_of(joined(founders, {node})));
  QVERIFY(!chain.is_voter(node));
  QVERIFY(chain.wallet(node)->qualifying >= 6);
  QVERIFY(!admission_progress(chain.rules(), chain.registry(), *chain.wallet(node)).can_vote_ever);
}

void TestChainRights::open_networks_admit_by_work() {
  ChainFixture chain(small_rules(VotersMode::Open));
  const auto founders = chain.add_nodes(5);
  QVERIFY(chain.begin(founders).ok());
  const std::size_t node = chain.add_node();
  QVERIFY(chain.join(node));
  QVERIFY(chain.round_of(founders));
  QVERIFY(chain.round_of(joined(founders, {node})));
  QVERIFY(!chain.is_voter(node));
  QVERIFY(chain.round_of(joined(founders, {node})));
  QVERIFY(chain.is_voter(node));
  QCOMPARE(chain.units(node), 12u);  // a sixth of the units
  // It has no right to vouch.
  const std::size_t guest = chain.add_node();
  QCOMPARE(chain.refusal(guest, chain.registration(guest, node, 1)),
           std::string("the voucher is not from a voter that can vouch"));
}

void TestChainRights::vouched_wallets_come_first_then_tokens() {
  ChainFixture chain(small_rules(VotersMode::Open));
  const auto founders = chain.add_nodes(4);
  QVERIFY(chain.begin(founders).ok());
  const auto strangers = chain.add_nodes(3);
  const std::size_t vouched = chain.add_node();
  for (const std::size_t node : strangers) QVERIFY(chain.join(node));
  QVERIFY(chain.say(vouched, chain.registration(vouched, founders[0], 1)));
  QVERIFY(chain.round_of(founders));
  std::vector<Work> works = works_of(founders);
  works.push_back({strangers[0], 600});
  works.push_back({strangers[1], 800});
  works.push_back({strangers[2], 700});
  works.push_back({vouched, 400});
  QVERIFY(chain.round(works));
  const std::vector<std::size_t> order = {vouched, strangers[1], strangers[2], strangers[0]};
  for (std::size_t i = 0; i < order.size(); ++i) {
    QVERIFY(chain.round(works));
    for (std::size_t j = 0; j < order.size(); ++j) QCOMPARE(chain.is_voter(order[j]), j <= i);
  }
}

void TestChainRights::small_contributions_do_not_qualify() {
  ChainFixture chain(small_rules(VotersMode::Open));
  const auto founders = chain.add_nodes(4);
  QVERIFY(chain.begin(founders).ok());
  const std::size_t small = chain.add_node(), enough = chain.add_node();
  QVERIFY(chain.join(small));
  QVERIFY(chain.join(enough));
  QVERIFY(chain.round_of(founders));
  // The lower median of 101, 301, 900 and 1000 is 301; its half, rounded up, is 151.
  std::vector<Work> works = {{founders[0], 101}, {founders[1], 1000}, {founders[2], 301}, {founders[3], 900}};
  works.push_back({small, 150});
  works.push_back({enough, 151});
  QVERIFY(chain.round(works));
  QCOMPARE(chain.wallet(small)->qualifying, 0u);
  QCOMPARE(chain.wallet(small)->counted_tokens, 150u);
  QCOMPARE(chain.member(small)->contributions, 1u);
  QCOMPARE(chain.wallet(enough)->qualifying, 1u);
  // Without voters there is nothing to compare with.
  QVERIFY(chain.round_of({small, enough}));
  QCOMPARE(chain.wallet(enough)->qualifying, 1u);
}

void TestChainRights::a_wallet_qualifies_once_a_round() {
  ChainFixture chain(small_rules(VotersMode::Open));
  const auto founders = chain.add_nodes(4);
  QVERIFY(chain.begin(founders).ok());
  std::vector<std::size_t> crowd = {chain.add_node()};
  for (int i = 0; i < 4; ++i) crowd.push_back(chain.add_node_of(chain.wallet_index(crowd[0])));
  for (const std::size_t node : crowd) QVERIFY(chain.join(node));
  QVERIFY(chain.round_of(founders));
  QVERIFY(chain.round_of(joined(founders, crowd)));
  QCOMPARE(chain.wallet(crowd[0])->qualifying, 1u);
  QVERIFY(!chain.is_voter(crowd[0]));
}

void TestChainRights::payloads_that_nobody_has_do_not_count() {
  ChainFixture chain(small_rules(VotersMode::Open));
  const auto founders = chain.add_nodes(4);
  QVERIFY(chain.begin(founders).ok());
  const std::size_t node = chain.add_node();
  QVERIFY(chain.join(node));
  QVERIFY(chain.round_of(founders));
  Received received;
  std::size_t holders = 2;
  received.payload = [&](std::size_t voter, std::size_t contributor, std::size_t row) {
    return contributor != node || (row == 1 && voter < founders[0] + holders);
  };
  QVERIFY(chain.round(works_of(joined(founders, {node})), received));
  QCOMPARE(chain.member(node)->contributions, 0u);
  QCOMPARE(chain.wallet(node)->counted_tokens, 0u);
  holders = 3;  // of one row
  QVERIFY(chain.round(works_of(joined(founders, {node})), received));
  QCOMPARE(chain.member(node)->contributions, 1u);
}

void TestChainRights::one_in_sixteen_is_admitted_a_round() {
  NoChecks checks;
  ChainRules rules = small_rules(VotersMode::Open, 1);
  rules.admission_contributions = 1;
  ChainFixture chain(rules);
  chain.set_checks(checks);
  const auto founders = chain.add_nodes(48);
  const auto crowd = chain.add_nodes(8);
  QVERIFY(chain.begin(founders).ok());
  for (const std::size_t node : crowd) QVERIFY(chain.join(node));
  QVERIFY(chain.round_of(founders));
  for (std::size_t expected = 51; expected <= 54; expected += 3) {
    QVERIFY(chain.round_of(joined(founders, crowd)));
    QCOMPARE(chain.registry().voter_count(), expected);
  }
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
