// Presence in the registry: away and back, silent voters, and members that contribute no more.
#include <QtTest>

#include "tests/support/test_main.h"
#include "tests/unit/chain/chain_fixture.h"

using namespace neuroshard;
using namespace neuroshard::chain;
using neuroshard::chain::testing::ChainFixture;
using neuroshard::chain::testing::Received;
using neuroshard::chain::testing::Work;

namespace {

constexpr std::uint64_t day_ms = 24ull * 3600 * 1000;

}  // namespace

class TestChainRegistryPresence : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void away_and_back_change_presence_from_the_next_block_on();
  void the_last_voter_stays_active();
  void silent_marks_are_for_active_voters();
  void a_right_to_return_ends_after_thirty_days();
  void a_member_without_units_that_contributes_no_more_is_dormant();
  void a_member_without_units_that_contributes_stays_active();
};

void TestChainRegistryPresence::away_and_back_change_presence_from_the_next_block_on() {
  ChainFixture chain;
  const auto nodes = chain.add_nodes(3);
  QVERIFY(chain.begin(nodes).ok());
  QCOMPARE(chain.refusal(nodes[0], Back{}), std::string("the member is active already"));
  QVERIFY(chain.say(nodes[0], Away{}));
  QVERIFY(!chain.is_active(nodes[0]));
  QCOMPARE(chain.registry().active().size(), std::size_t{2});
  for (const std::uint32_t at : chain.registry().active())
    QVERIFY(chain.registry().members()[at].presence == Presence::Active);
  QCOMPARE(chain.member(nodes[0])->dormant_ms, chain.registry().time_ms());
  QCOMPARE(chain.committee()->units(), 24u);
  QCOMPARE(chain.refusal(nodes[0], Away{}), std::string("the member is dormant already"));
  QVERIFY(chain.say(nodes[0], Back{}));
  QVERIFY(chain.is_active(nodes[0]));
  QCOMPARE(chain.registry().active(), (std::vector<std::uint32_t>{0, 1, 2}));
  QCOMPARE(chain.committee()->units(), 36u);
  const std::size_t stranger = chain.add_node();
  QCOMPARE(chain.refusal(stranger, Away{}), std::string("the node is not a member"));
}

void TestChainRegistryPresence::the_last_voter_stays_active() {
  ChainFixture chain;
  const auto nodes = chain.add_nodes(2);
  QVERIFY(chain.begin(nodes).ok());
  const std::size_t candidate = chain.add_node();
  QVERIFY(chain.join(candidate));
  BlockBody both;
  both.statements = {chain.statement(nodes[0], Away{}), chain.statement(nodes[1], Away{})};
  QCOMPARE(chain.refusal(both), std::string("the last active voter stays active"));
  // A leader that has collected both keeps the first.
  const BlockBody kept =
      applicable(chain.rules(), chain.registry(), chain.hash(), chain.registry().time_ms() + 1000, both);
  QCOMPARE(kept.statements.size(), std::size_t{1});
  BlockBody silent;
  silent.silent = {chain.number(nodes[0]), chain.number(nodes[1])};
  std::sort(silent.silent.begin(), silent.silent.end());
  QCOMPARE(chain.refusal(silent), std::string("nobody would vote after the block"));
  QVERIFY(chain.say(nodes[0], Away{}));
  QCOMPARE(chain.refusal(nodes[1], Away{}), std::string("the last active voter stays active"));
  QCOMPARE(chain.refusal(nodes[1], Leave{}), std::string("the last active voter can't leave"));
  QVERIFY(!admissible(chain.rules(), chain.registry(), chain.hash(), chain.statement(nodes[1], Away{})).ok());
  QVERIFY(admissible(chain.rules(), chain.registry(), chain.hash(), chain.statement(candidate, Away{})).ok());
}

void TestChainRegistryPresence::silent_marks_are_for_active_voters() {
  ChainFixture chain;
  const auto nodes = chain.add_nodes(4);
  QVERIFY(chain.begin(nodes).ok());
  const std::size_t candidate = chain.add_node();
  QVERIFY(chain.join(candidate));
  BlockBody body;
  body.silent = {chain.number(candidate)};
  QCOMPARE(chain.refusal(body), std::string("only active voters can be silent"));
  body.silent = {chain.number(nodes[0]), chain.number(nodes[0])};
  QCOMPARE(chain.refusal(body), std::string("the silent voters are not ascending"));
  body.silent = {77};
  QCOMPARE(chain.refusal(body), std::string("only active voters can be silent"));
  body.silent = {chain.number(nodes[0])};
  body.statements = {chain.statement(nodes[0], Back{})};
  QCOMPARE(chain.refusal(body), std::string("the member is active already"));
  body.statements.clear();
  QVERIFY(chain.append(body).ok());
  QVERIFY(!chain.is_active(nodes[0]));
  QCOMPARE(chain.refusal(body), std::string("only active voters can be silent"));
}

void TestChainRegistryPresence::a_right_to_return_ends_after_thirty_days() {
  ChainFixture chain;
  const auto nodes = chain.add_nodes(3);
  QVERIFY(chain.begin(nodes).ok());
  QVERIFY(chain.say(nodes[0], Away{}));
  QCOMPARE(chain.refusal(nodes[0], Back{}, 30 * day_ms), std::string());
  QCOMPARE(chain.refusal(nodes[0], Back{}, 30 * day_ms + 1), std::string("the node is not a member"));
  QVERIFY(chain.join(chain.add_node()));
  QVERIFY(chain.say(nodes[0], chain.registration(nodes[0]), 30 * day_ms + 1));
  QVERIFY(chain.number(nodes[0]) > 3u);
  QVERIFY(chain.is_voter(nodes[0]));  // a founder's wallet; the node has no units before it contributes
  QCOMPARE(chain.units(nodes[0]), 0u);
}

// Nobody hears its heartbeats: a candidate that crashed is noticed by the rounds.
void TestChainRegistryPresence::a_member_without_units_that_contributes_no_more_is_dormant() {
  ChainFixture chain;
  const auto founders = chain.add_nodes(2);
  QVERIFY(chain.begin(founders).ok());
  const std::size_t came = chain.add_node(), never = chain.add_node();
  QVERIFY(chain.join(came) && chain.join(never));
  const std::uint64_t joined = chain.member(never)->presence_height;
  QVERIFY(chain.round_of({founders[0]}));
  QVERIFY(chain.round_of({founders[0], came}));
  const std::uint64_t last = chain.registry().round();
  while (chain.is_active(came) || chain.is_active(never)) {
    QVERIFY(chain.registry().round() < last + 30);
    QVERIFY(chain.is_active(came) || chain.registry().round() >= last + quiet_rounds);
    QVERIFY(chain.is_active(never) || chain.registry().height() >= joined + quiet_blocks);
    QVERIFY(chain.round_of({founders[0]}));
  }
  for (const std::size_t node : {came, never}) {
    QCOMPARE(chain.member(node)->dormant_ms > 0, true);
    QVERIFY(chain.say(node, Back{}) && chain.is_active(node));
  }
  // A voter that only votes is heard.
  QVERIFY(chain.is_active(founders[1]));
  // It has as many blocks again.
  QVERIFY(chain.round_of({founders[0]}));
  QVERIFY(chain.is_active(came) && chain.is_active(never));
}

void TestChainRegistryPresence::a_member_without_units_that_contributes_stays_active() {
  ChainFixture chain;
  const auto founders = chain.add_nodes(2);
  QVERIFY(chain.begin(founders).ok());
  const std::size_t counted = chain.add_node(), uncounted = chain.add_node(), rare = chain.add_node();
  QVERIFY(chain.join(counted) && chain.join(uncounted) && chain.join(rare));
  QVERIFY(chain.round_of({founders[0]}));
  Received received;  // its payloads reach nobody
  received.payload = [&](std::size_t, std::size_t node, std::size_t) { return node != uncounted; };
  for (std::uint64_t i = 0; i < 3 * quiet_blocks; ++i) {
    std::vector<Work> works{{founders[0]}, {counted}, {uncounted}};
    if (i % (quiet_rounds + 1) == 0) works.push_back({rare});
    QVERIFY(chain.round(works, received));
    QVERIFY(chain.is_active(counted) && chain.is_active(uncounted) && chain.is_active(rare));
  }
  QCOMPARE(chain.member(uncounted)->contributions, 0u);
}

NS_TEST(TestChainRegistryPresence)
#include "test_registry_presence.moc"
