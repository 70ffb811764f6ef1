// The parts that members have in a round: voters compute, others take the anchor from voters, and members that stopped
// are not waited for.
#include <QtTest>
#include <set>

#include "core/rounds/round_roles.h"
#include "tests/support/test_main.h"
#include "tests/unit/chain/chain_fixture.h"

using namespace neuroshard;                  // NOLINT
using namespace neuroshard::rounds;          // NOLINT
using namespace neuroshard::chain::testing;  // NOLINT

namespace {

net::NodeId id_of_voter(std::size_t number) {
  net::NodeId id{};
  id[0] = static_cast<std::uint8_t>(number);
  id[2] = 1;
  return id;
}

// Voters of one unit each. rows: of each, those after the last have all rows.
chain::Committee committee_of(std::size_t voters, const std::vector<chain::RowSet>& rows = {}) {
  std::vector<chain::CommitteeMember> members;
  for (std::size_t i = 0; i < voters; ++i)
    members.push_back(
        {static_cast<std::uint32_t>(i), 1, {}, id_of_voter(i), i < rows.size() ? rows[i] : chain::RowSet()});
  return chain::Committee(std::move(members), chain::VotersMode::Invited, Hash256{}, 1);
}

}  // namespace

class TestRoundRoles : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void outside_a_large_committee_nobody_computes();
  void anchors_come_from_voters_that_hold_the_row();
  void nodes_of_a_large_network_ask_different_voters();
  void new_members_are_expected_for_some_blocks();
  void members_that_stopped_are_not_expected();
  void free_registrations_need_no_room();
  void a_round_takes_a_quarter_of_candidates_and_all_trusted_ones();
  void a_candidate_that_a_closed_round_takes_is_none_in_it();
  void a_round_takes_so_many_candidates_by_lot();
  void voters_and_trusted_wallets_need_no_lot();
};

void TestRoundRoles::outside_a_large_committee_nobody_computes() {
  const net::NodeId outside = id_of_voter(200);
  QVERIFY(computes_rows(committee_of(chain::max_direct_voters), outside));
  const chain::Committee large = committee_of(chain::max_direct_voters + 1);
  QVERIFY(!computes_rows(large, outside));
  QVERIFY(computes_rows(large, id_of_voter(3)));
}

void TestRoundRoles::anchors_come_from_voters_that_hold_the_row() {
  const chain::Committee committee =
      committee_of(4, {chain::RowSet::of({0}), chain::RowSet::of({1}), chain::RowSet::of({0, 1})});
  using Ids = std::vector<net::NodeId>;
  QCOMPARE(anchor_sources(committee, id_of_voter(3), 0), (Ids{id_of_voter(0), id_of_voter(2)}));
  QCOMPARE(anchor_sources(committee, id_of_voter(0), 1),
           (Ids{id_of_voter(1), id_of_voter(2), id_of_voter(3)}));
}

void TestRoundRoles::nodes_of_a_large_network_ask_different_voters() {
  const std::size_t voters = 40;
  const chain::Committee committee = committee_of(voters);
  std::set<net::NodeId> asked;
  for (std::size_t self = 0; self < voters; ++self) {
    const auto sources = anchor_sources(committee, id_of_voter(self), 0);
    QCOMPARE(sources.size(), most_anchor_sources);
    const std::set<net::NodeId> distinct(sources.begin(), sources.end());
    QCOMPARE(distinct.size(), most_anchor_sources);
    QVERIFY(!distinct.contains(id_of_voter(self)));
    asked.insert(sources.front());
  }
  QVERIFY(asked.size() > voters / 2);
}

void TestRoundRoles::new_members_are_expected_for_some_blocks() {
  ChainFixture chain;
  const auto nodes = chain.add_nodes(4);
  QVERIFY(chain.begin(nodes).ok());
  QCOMPARE(expected_members(chain.registry()), std::size_t{4});
  // Blocks without work: the last member goes and comes.
  const auto append = [&] {
    return chain.is_active(nodes[3]) ? chain.say(nodes[3], chain::Away{})
                                     : chain.say(nodes[3], chain::Back{});
  };
  while (chain.registry().height() < new_for_blocks) QVERIFY(append());
  QVERIFY(expected_members(chain.registry()) >= 3);
  QVERIFY(append());
  QCOMPARE(expected_members(chain.registry()), std::size_t{0});
  const std::size_t late = chain.add_node();
  QVERIFY(chain.join(late));
  QCOMPARE(expected_members(chain.registry()), std::size_t{1});
}

void TestRoundRoles::members_that_stopped_are_not_expected() {
  ChainFixture chain;
  const auto nodes = chain.add_nodes(4);
  QVERIFY(chain.begin(nodes).ok());
  QVERIFY(chain.round_of(nodes));
  QVERIFY(chain.say(nodes[3], chain::Away{}));
  QCOMPARE(expected_members(chain.registry()), std::size_t{3});
  for (int round = 0; round < 2; ++round) QVERIFY(chain.round_of({nodes[0], nodes[1]}));
  QCOMPARE(expected_members(chain.registry()), std::size_t{3});  // one pause is no end
  QVERIFY(chain.round_of({nodes[0], nodes[1]}));
  QCOMPARE(expected_members(chain.registry()), std::size_t{2});
}

// Anybody can make keys and register them. A node that kept room for all of them would pause.
void TestRoundRoles::free_registrations_need_no_room() {
  ChainFixture chain;
  const auto nodes = chain.add_nodes(3);
  QVERIFY(chain.begin(nodes).ok());
  for (int block = 0; block < 3; ++block) {
    std::vector<chain::Statement> statements;
    for (int i = 0; i < 100; ++i) {
      const std::size_t node = chain.add_node();
      statements.push_back(chain.statement(node, chain.registration(node)));
    }
    QVERIFY(chain.append(ChainFixture::body_of(std::move(statements))).ok());
  }
  QCOMPARE(chain.registry().members().size(), std::size_t{303});
  QCOMPARE(expected_members(chain.registry()), std::size_t{303});
  QCOMPARE(most_contributors(chain.registry()), std::size_t{3});
}

void TestRoundRoles::a_round_takes_a_quarter_of_candidates_and_all_trusted_ones() {
  ChainFixture chain;
  const auto nodes = chain.add_nodes(8);
  QVERIFY(chain.begin(nodes).ok());
  QCOMPARE(most_contributors(chain.registry()), std::size_t{8 + 2});
  QVERIFY(chain.say(nodes[7], chain::Away{}));
  QCOMPARE(most_contributors(chain.registry()), std::size_t{7 + 2});
  const std::size_t vouched = chain.add_node(), stranger = chain.add_node();
  QVERIFY(chain.say(vouched, chain.registration(vouched, nodes[0], 1)));
  QVERIFY(chain.join(stranger));
  QVERIFY(chain.wallet(vouched)->is_trusted() && !chain.wallet(stranger)->is_trusted());
  QCOMPARE(most_contributors(chain.registry()), std::size_t{8 + 2});
}

void TestRoundRoles::a_candidate_that_a_closed_round_takes_is_none_in_it() {
  ChainFixture chain;
  const auto nodes = chain.add_nodes(4);
  QVERIFY(chain.begin(nodes).ok());
  const std::size_t first = chain.add_node(), second = chain.add_node();
  QVERIFY(chain.join(first) && chain.join(second));
  QVERIFY(chain.round_of(nodes));
  const auto is_limited = [&](std::size_t node) {
    return is_candidate(chain.registry(), chain.number(node));
  };
  QVERIFY(!is_limited(nodes[0]) && is_limited(first) && is_limited(second));
  QVERIFY(is_candidate(chain.registry(), 4321));
  std::vector<Work> works;
  for (const std::size_t node : nodes) works.push_back({node});
  works.push_back({first});
  works.push_back({second});
  chain::BlockBody body;
  body.close = chain.close(works);
  QVERIFY(chain.append(body).ok());
  QVERIFY(!is_limited(nodes[0]) && is_limited(first) != is_limited(second));  // of four voters' quarter
}

void TestRoundRoles::a_round_takes_so_many_candidates_by_lot() {
  ChainFixture chain;
  const auto nodes = chain.add_nodes(4);
  QVERIFY(chain.begin(nodes).ok());
  const auto strangers = chain.add_nodes(20);
  for (const std::size_t node : strangers) QVERIFY(chain.join(node));
  QVERIFY(chain.round_of(nodes));
  const auto drawn = [&](const ContributorLot& lot) {
    std::set<std::size_t> taken;
    for (const std::size_t node : strangers)
      if (lot.takes(chain.number(node))) taken.insert(node);
    return taken;
  };
  const ContributorLot first(chain.registry(), 8);
  QCOMPARE(drawn(first).size(), std::size_t{8});
  QCOMPARE(first.left_out(), std::size_t{12});
  QCOMPARE(ContributorLot(chain.registry(), 20).left_out(), std::size_t{0});
  const std::size_t all = expected_members(chain.registry()),
                    some = expected_members(chain.registry(), first);
  QVERIFY(some < all &&
          some + first.left_out() >= all);  // some of those that are left out are not new any more
  // A node that joins in the middle of a round changes nothing in it.
  QVERIFY(chain.join(chain.add_node()));
  QCOMPARE(drawn(ContributorLot(chain.registry(), 8)), drawn(first));
  // Other rounds draw others: after 20 rounds nearly everybody was drawn.
  std::set<std::size_t> ever;
  for (int round = 0; round < 20; ++round) {
    QVERIFY(chain.round_of(nodes));
    ever.merge(drawn(ContributorLot(chain.registry(), 8)));
  }
  QVERIFY2(ever.size() >= 18, QByteArray::number(static_cast<int>(ever.size())).constData());
  // The close names who is in.
  std::vector<Work> works;
  for (const std::size_t node : nodes) works.push_back({node});
  chain::BlockBody body;
  body.close = chain.close(works);
  QVERIFY(chain.append(body).ok());
  QCOMPARE(ContributorLot(chain.registry(), 8).left_out(), std::size_t{0});
}

void TestRoundRoles::voters_and_trusted_wallets_need_no_lot() {
  ChainFixture chain;
  const auto nodes = chain.add_nodes(8);
  QVERIFY(chain.begin(nodes).ok());
  const std::size_t vouched = chain.add_node();
  QVERIFY(chain.say(vouched, chain.registration(vouched, nodes[0], 1)));
  const auto strangers = chain.add_nodes(5);
  for (const std::size_t node : strangers) QVERIFY(chain.join(node));
  QVERIFY(chain.round_of(nodes));
  const ContributorLot none(chain.registry(), 0);
  for (const std::size_t node : nodes) QVERIFY(none.takes(chain.number(node)));
  QVERIFY(none.takes(chain.number(vouched)));
  for (const std::size_t node : strangers) QVERIFY(!none.takes(chain.number(node)));
}

NS_TEST(TestRoundRoles)
#include "test_round_roles.moc"
