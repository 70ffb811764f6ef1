// Committees: quorums, leaders, the limit for unvouched voters, and epochs beyond 512 nodes.
#include <QtTest>

#include <algorithm>
#include <set>

#include "core/chain/detail/shares.h"
#include "tests/support/test_main.h"
#include "tests/unit/chain/chain_fixture.h"

using namespace neuroshard;
using namespace neuroshard::chain;
using neuroshard::chain::testing::ChainFixture;
using neuroshard::chain::testing::NoChecks;
using neuroshard::chain::testing::small_rules;

namespace {

Committee committee_of(std::size_t voters, VotersMode mode, std::uint64_t height = 1,
                       const Hash256& beacon = {}) {
  std::vector<CommitteeMember> members;
  for (std::uint32_t i = 0; i < voters; ++i) {
    const crypto::PublicKey key = test::key_numbered(static_cast<std::uint16_t>(i)).public_key();
    members.push_back({10 * i, units_per_wallet, key, crypto::node_id(key)});
  }
  return Committee(std::move(members), mode, beacon, height);
}

}  // namespace

class TestChainCommittee : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void quorums_are_strict();
  void members_are_found_by_number_and_id();
  void neighbours_follow_by_id();
  void leaders_are_ordered_by_lot();
  void unvouched_voters_hold_less_than_a_quarter();
  void six_hundred_voters_draw_an_epoch();
  void an_epoch_ends_after_rounds_and_time();
};

void TestChainCommittee::quorums_are_strict() {
  const Committee three = committee_of(3, VotersMode::Open);
  QVERIFY(!three.is_quorum(24));
  QVERIFY(three.is_quorum(25));
  QVERIFY(three.is_stall_quorum(24));  // two of three go on
  QVERIFY(!three.is_stall_quorum(22));
  QVERIFY(!three.has_honest(12));
  QVERIFY(three.has_honest(13));
  QVERIFY(!three.is_majority(18));
  QVERIFY(three.is_majority(19));
  const Committee eight = committee_of(8, VotersMode::Founders);
  QVERIFY(!eight.is_stall_quorum(60));  // five eighths exactly
  QVERIFY(eight.is_stall_quorum(61));
  const Committee invited = committee_of(8, VotersMode::Invited);
  QVERIFY(!invited.is_stall_quorum(48));
  QVERIFY(invited.is_stall_quorum(49));
}

void TestChainCommittee::members_are_found_by_number_and_id() {
  const Committee committee = committee_of(5, VotersMode::Open);
  for (std::size_t i = 0; i < 5; ++i) {
    QCOMPARE(committee.position(committee.members()[i].number), std::optional<std::size_t>(i));
    QCOMPARE(committee.position(committee.members()[i].id), std::optional<std::size_t>(i));
  }
  QVERIFY(!committee.position(std::uint32_t{5}));
  QVERIFY(!committee.position(net::NodeId{}));
  QCOMPARE(committee.units_of(5), 0u);
  QVERIFY(!committee.is_collected());
  QVERIFY(committee_of(17, VotersMode::Open).is_collected());
}

void TestChainCommittee::neighbours_follow_by_id() {
  const Committee committee = committee_of(9, VotersMode::Open);
  std::vector<net::NodeId> ids = committee.others({});
  std::sort(ids.begin(), ids.end());
  ids.push_back(crypto::node_id(test::key_numbered(99).public_key()));  // of no member
  for (const net::NodeId& self : ids) {
    std::vector<net::NodeId> right = committee.others(self);
    std::sort(right.begin(), right.end());
    std::rotate(right.begin(), std::upper_bound(right.begin(), right.end(), self), right.end());
    QCOMPARE(committee.neighbours(self, 100), right);
    right.resize(4);
    QCOMPARE(committee.neighbours(self, 4), right);
  }
}

void TestChainCommittee::leaders_are_ordered_by_lot() {
  const Committee committee = committee_of(7, VotersMode::Open);
  std::set<std::size_t> leaders;
  for (std::uint32_t view = 0; view < 7; ++view) leaders.insert(committee.leader(view));
  QCOMPARE(leaders.size(), std::size_t{7});
  QCOMPARE(committee.leader(7), committee.leader(0));
  const auto order = [](const Committee& of) {
    std::vector<std::size_t> views;
    for (std::uint32_t view = 0; view < 7; ++view) views.push_back(of.leader(view));
    return views;
  };
  QVERIFY(order(committee) != order(committee_of(7, VotersMode::Open, 2)));
  Hash256 beacon{};
  beacon[0] = 1;
  QVERIFY(order(committee) != order(committee_of(7, VotersMode::Open, 1, beacon)));
}

void TestChainCommittee::unvouched_voters_hold_less_than_a_quarter() {
  ChainFixture chain(small_rules(VotersMode::Open));
  const auto founders = chain.add_nodes(7);
  QVERIFY(chain.begin(founders).ok());
  const auto strangers = chain.add_nodes(6);
  for (const std::size_t node : strangers) QVERIFY(chain.join(node));
  QVERIFY(chain.round_of(founders));
  std::vector<std::size_t> all = founders;
  all.insert(all.end(), strangers.begin(), strangers.end());
  std::set<std::vector<std::uint32_t>> chosen;
  for (int round = 0; round < 16; ++round) {
    QVERIFY(chain.round_of(all));
    std::uint64_t unvouched = 0;
    std::vector<std::uint32_t> with_units;
    for (const std::size_t node : strangers) {
      unvouched += chain.units(node);
      if (chain.units(node) > 0) with_units.push_back(chain.number(node));
    }
    QVERIFY(4 * unvouched < chain.committee()->units());
    chosen.insert(with_units);
  }
  QCOMPARE(chain.registry().voter_count(), std::size_t{13});
  QCOMPARE(chain.committee()->units(), 12u * 9);  // two strangers beside seven founders
  QVERIFY(chosen.size() > 3);                     // the beacon chooses anew each round
  // Founders that go away take room from the others.
  for (std::size_t i = 0; i < 4; ++i) QVERIFY(chain.say(founders[i], Away{}));
  QCOMPARE(chain.committee()->units(), 12u * 3);
}

void TestChainCommittee::six_hundred_voters_draw_an_epoch() {
  NoChecks checks;
  ChainFixture chain(small_rules(VotersMode::Invited, 1));
  chain.set_checks(checks);
  const auto nodes = chain.add_nodes(600);
  QVERIFY(chain.begin(nodes).ok());
  const std::vector<std::uint32_t> drawn = chain.registry().epoch_committee();
  QCOMPARE(drawn.size(), max_committee);
  QVERIFY(std::is_sorted(drawn.begin(), drawn.end()));
  const CommitteePtr before = chain.committee();
  QCOMPARE(before->size(), max_committee);
  QVERIFY(draw_epoch(chain.registry(), chain.registry().beacon()) == drawn);
  Hash256 beacon{};
  QVERIFY(draw_epoch(chain.registry(), beacon) != drawn);

  // Presence and leaves change it inside the epoch, nothing else does.
  const std::size_t first = chain.node_of(drawn[0]), second = chain.node_of(drawn[1]);
  BlockBody body;
  body.statements = {chain.statement(first, Away{}), chain.statement(second, Leave{})};
  QVERIFY(chain.append(body).ok());
  QCOMPARE(chain.committee()->size(), max_committee - 2);
  QVERIFY(chain.say(first, Back{}));
  QCOMPARE(chain.committee()->size(), max_committee - 1);
  QVERIFY(chain.registry().epoch_committee() == drawn);
}

void TestChainCommittee::an_epoch_ends_after_rounds_and_time() {
  NoChecks checks;
  ChainRules rules = small_rules(VotersMode::Invited, 1);
  rules.epoch_rounds = 2;
  rules.epoch_least_ms = 10'000;
  ChainFixture chain(rules);
  chain.set_checks(checks);
  const auto nodes = chain.add_nodes(520);
  QVERIFY(chain.begin(nodes).ok());
  const std::vector<std::uint32_t> drawn = chain.registry().epoch_committee();
  const auto round = [&](std::uint64_t after_ms) {
    BlockBody body;
    body.close = chain.close({{nodes[0]}});
    if (!chain.append(body, after_ms).ok()) return false;
    body = {};
    body.result = chain.result();
    return chain.append(body, after_ms).ok();
  };
  QVERIFY(round(1000));
  QVERIFY(round(1000));
  QVERIFY(chain.registry().epoch_committee() == drawn);  // the time is not over
  QVERIFY(round(3000));
  QVERIFY(chain.registry().epoch_committee() != drawn);
  QCOMPARE(chain.registry().epoch_committee().size(), max_committee);
  const std::vector<std::uint32_t> second = chain.registry().epoch_committee();
  QVERIFY(round(6000));
  QVERIFY(chain.registry().epoch_committee() == second);  // one round of two
  QVERIFY(round(1000));
  QVERIFY(chain.registry().epoch_committee() != second);
  // When all fit again, all vote from the next epoch on.
  BlockBody body;
  for (std::size_t i = 0; i < 10; ++i) body.statements.push_back(chain.statement(nodes[500 + i], Away{}));
  QVERIFY(chain.append(body).ok());
  QVERIFY(round(6000));
  QVERIFY(round(6000));
  QVERIFY(chain.registry().epoch_committee().empty());
  QCOMPARE(chain.committee()->size(), std::size_t{510});
}

NS_TEST(TestChainCommittee)
#include "test_committee.moc"
