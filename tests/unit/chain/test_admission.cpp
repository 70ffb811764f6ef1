// The wallets that become voters: by invitation, by work, or never.
#include <QtTest>

#include "tests/support/test_main.h"
#include "tests/unit/chain/works.h"

using namespace neuroshard;         // NOLINT
using namespace neuroshard::chain;  // NOLINT
using neuroshard::chain::testing::ChainFixture;
using neuroshard::chain::testing::joined;
using neuroshard::chain::testing::NoChecks;
using neuroshard::chain::testing::Received;
using neuroshard::chain::testing::small_rules;
using neuroshard::chain::testing::Work;
using neuroshard::chain::testing::works_of;

class TestChainAdmission : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void invited_wallets_become_voters();
  void founders_stay_among_themselves();
  void open_networks_admit_by_work();
  void vouched_wallets_come_first_then_tokens();
  void small_contributions_do_not_qualify();
  void a_wallet_qualifies_once_a_round();
  void payloads_that_nobody_has_do_not_count();
  void one_in_sixteen_is_admitted_a_round();
};

void TestChainAdmission::invited_wallets_become_voters() {
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

void TestChainAdmission::founders_stay_among_themselves() {
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

void TestChainAdmission::open_networks_admit_by_work() {
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

void TestChainAdmission::vouched_wallets_come_first_then_tokens() {
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

void TestChainAdmission::small_contributions_do_not_qualify() {
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

void TestChainAdmission::a_wallet_qualifies_once_a_round() {
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

void TestChainAdmission::payloads_that_nobody_has_do_not_count() {
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

void TestChainAdmission::one_in_sixteen_is_admitted_a_round() {
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

NS_TEST(TestChainAdmission)
#include "test_admission.moc"
