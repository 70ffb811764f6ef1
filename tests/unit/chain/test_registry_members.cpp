// Members and wallets in the registry: registration, vouchers, presence, beacon commitments, units.
#include <QtTest>

#include "tests/support/test_main.h"
#include "tests/unit/chain/chain_fixture.h"

using namespace neuroshard;
using namespace neuroshard::chain;
using neuroshard::chain::testing::ChainFixture;
using neuroshard::chain::testing::FixtureNodes;
using neuroshard::chain::testing::small_rules;

class TestChainRegistryMembers : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void a_genesis_makes_its_founders_voters();
  void a_genesis_is_signed_and_complete();
  void founders_of_the_profile_begin_and_vote_when_they_come_data();
  void founders_of_the_profile_begin_and_vote_when_they_come();
  void a_registered_node_is_a_candidate();
  void a_registration_is_bound_to_node_network_and_time();
  void a_member_holds_the_rows_it_registers_with();
  void a_statement_holds_in_one_history_for_eight_blocks();
  void a_block_has_one_statement_of_a_node();
  void a_voucher_is_used_once();
  void vouchers_come_from_trusted_voters_every_eight_rounds();
  void a_registered_member_brings_a_voucher_later();
  void a_wallets_units_are_divided_among_four_nodes();
  void a_member_that_leaves_can_register_anew();
  void a_new_hash_chain_holds_two_rounds_later();
};

void TestChainRegistryMembers::a_genesis_makes_its_founders_voters() {
  ChainFixture chain;
  const auto nodes = chain.add_nodes(3);
  QVERIFY(chain.begin(nodes).ok());
  QCOMPARE(chain.registry().height(), 0u);
  QCOMPARE(chain.registry().voter_count(), std::size_t{3});
  QCOMPARE(chain.committee()->units(), 36u);
  QVERIFY(chain.registry().opening(chain.hash()) == chain.hash());
  for (const std::size_t node : nodes) {
    QVERIFY(chain.is_voter(node));
    QVERIFY(chain.wallet(node)->founder);
    QCOMPARE(chain.units(node), 12u);
  }
}

void TestChainRegistryMembers::a_genesis_is_signed_and_complete() {
  ChainFixture chain;
  const auto nodes = chain.add_nodes(2);
  SignatureChecks checks;
  const auto refusal = [&](const BlockBody& body) {
    const auto result = apply_genesis(chain.rules(), ChainFixture::begin_ms, body, checks);
    return result.ok() ? std::string() : result.error().message;
  };
  const BlockBody right = chain.genesis_body(nodes);
  QCOMPARE(refusal(right), std::string());
  BlockBody body = right;
  body.genesis->founders[1].signature[0] ^= 1;
  QCOMPARE(refusal(body), std::string("a founder's signature does not hold"));
  body = right;
  body.genesis->founders[1] = body.genesis->founders[0];
  QCOMPARE(refusal(body), std::string("the founders are not ascending"));
  body = right;
  body.genesis->anchors.pop_back();
  QCOMPARE(refusal(body), std::string("a genesis has an anchor for each row of the model"));
  body = right;
  body.genesis->founders.clear();
  QCOMPARE(refusal(body), std::string("a genesis names its founders"));
  body = right;
  body.silent = {0};
  QCOMPARE(refusal(body), std::string("the first block is a genesis and nothing else"));
  body = right;
  body.genesis->founders[0].reference.height = 1;
  QCOMPARE(refusal(body), std::string("a founder is not a plain registration without a reference"));

  const Proposed proposed = *apply_genesis(chain.rules(), ChainFixture::begin_ms, right, checks);
  BlockHeader header = proposed.header;
  header.registry[0] ^= 1;
  QVERIFY(
      !genesis_registry(chain.rules(), *make_block(header, right, {}, chain.rules().network), checks).ok());
}

void TestChainRegistryMembers::founders_of_the_profile_begin_and_vote_when_they_come_data() {
  QTest::addColumn<int>("mode");
  QTest::newRow("invited") << static_cast<int>(VotersMode::Invited);
  QTest::newRow("founders") << static_cast<int>(VotersMode::Founders);
}

void TestChainRegistryMembers::founders_of_the_profile_begin_and_vote_when_they_come() {
  QFETCH(int, mode);
  ChainRules rules = small_rules(static_cast<VotersMode>(mode));
  FixtureNodes keys(rules, 1);  // the same keys as below
  for (const std::size_t node : keys.add_nodes(2))
    rules.founders.push_back(keys.wallet_key(node).public_key());
  std::sort(rules.founders.begin(), rules.founders.end());

  ChainFixture chain(rules);
  const auto nodes = chain.add_nodes(3);
  SignatureChecks checks;
  const auto refused =
      apply_genesis(rules, ChainFixture::begin_ms, chain.genesis_body({nodes[0], nodes[2]}), checks);
  QCOMPARE(refused.error().message,
           std::string("a founder's wallet is not one of the founders that the network's profile names"));
  QVERIFY(chain.begin({nodes[0]}).ok());
  QCOMPARE(chain.registry().voter_count(), std::size_t{1});
  QVERIFY(chain.wallet(nodes[1])->founder && !chain.is_voter(nodes[1]));
  QVERIFY(chain.join(nodes[1]));
  QVERIFY(chain.is_voter(nodes[1]));
  QVERIFY2(chain.join(nodes[2]) && !chain.is_voter(nodes[2]), "a stranger stays a candidate");
}

void TestChainRegistryMembers::a_registered_node_is_a_candidate() {
  ChainFixture chain;
  QVERIFY(chain.begin(chain.add_nodes(2)).ok());
  const std::size_t node = chain.add_node();
  QVERIFY(chain.join(node));
  QCOMPARE(chain.number(node), 2u);
  QVERIFY(chain.is_active(node));
  QVERIFY(!chain.is_voter(node));
  QCOMPARE(chain.units(node), 0u);
  QCOMPARE(chain.refusal(node, chain.registration(node)), std::string("the node is a member already"));
}

void TestChainRegistryMembers::a_registration_is_bound_to_node_network_and_time() {
  ChainFixture chain;
  QVERIFY(chain.begin(chain.add_nodes(2)).ok());
  const std::size_t node = chain.add_node(), other = chain.add_node();
  QCOMPARE(chain.refusal(node, chain.registration(other)),
           std::string("the delegation is for another node or network"));
  Register what = chain.registration(node);
  what.delegation =
      crypto::delegate(chain.wallet_key(node), chain.key(node).public_key(), chain.rules().network,
                       WallTime(std::chrono::milliseconds(ChainFixture::begin_ms)), 1);
  QCOMPARE(chain.refusal(node, what), std::string("the delegation has expired"));
  what = chain.registration(node);
  what.delegation.signature[0] ^= 1;
  QCOMPARE(chain.refusal(node, what), std::string("a signature of a member's statement does not hold"));
  what = chain.registration(node);
  what.beacon.length = 0;
  QCOMPARE(chain.refusal(node, what), std::string("the hash chain is not for the coming rounds"));
  what.beacon = {what.beacon.tip, 70'000, 10};
  QCOMPARE(chain.refusal(node, what), std::string("the hash chain is not for the coming rounds"));
}

void TestChainRegistryMembers::a_member_holds_the_rows_it_registers_with() {
  ChainFixture chain(small_rules(VotersMode::Invited, 3));
  const auto founders = chain.add_nodes(2);
  chain.set_rows(founders[0], RowSet::of({0, 2}));
  QVERIFY(chain.begin(founders).ok());
  QCOMPARE(chain.member(founders[0])->rows, RowSet::of({0, 2}));
  QVERIFY(chain.member(founders[1])->rows.is_all());
  const std::size_t node = chain.add_node();
  chain.set_rows(node, RowSet::of({3}));
  QCOMPARE(chain.refusal(node, chain.registration(node)),
           std::string("the node wants to hold a row that the model does not have"));
  chain.set_rows(node, RowSet::of({1}));
  QVERIFY(chain.join(node));
  QCOMPARE(chain.member(node)->rows, RowSet::of({1}));
  const Bytes bytes = chain.registry().encode();
  const auto read = Registry::decode(bytes);
  QVERIFY(read.ok());
  QCOMPARE((*read)->root(), chain.registry().root());
  QCOMPARE((*read)->encode(), bytes);

  ChainRules fragments = small_rules(VotersMode::Invited, 3);
  fragments.fragments = 3;
  ChainFixture whole(fragments);
  QVERIFY(whole.begin(whole.add_nodes(2)).ok());
  const std::size_t guest = whole.add_node();
  whole.set_rows(guest, RowSet::of({1}));
  QCOMPARE(whole.refusal(guest, whole.registration(guest)),
           std::string("in this network each member holds the whole model"));
}

void TestChainRegistryMembers::a_statement_holds_in_one_history_for_eight_blocks() {
  ChainFixture chain, other(small_rules(), 100);
  QVERIFY(chain.begin(chain.add_nodes(2)).ok());
  QVERIFY(other.begin(other.add_nodes(2)).ok());
  const std::size_t node = chain.add_node();
  const Statement foreign = chain.statement_at(node, {0, other.hash()}, chain.registration(node));
  QCOMPARE(chain.refusal(ChainFixture::body_of({foreign})),
           std::string("the statement names no recent block of this history"));
  const Statement statement = chain.statement(node, chain.registration(node));
  for (int block = 0; block < 7; ++block) QVERIFY(chain.join(chain.add_node()));
  QCOMPARE(chain.refusal(ChainFixture::body_of({statement})), std::string());
  QVERIFY(chain.join(chain.add_node()));
  QCOMPARE(chain.refusal(ChainFixture::body_of({statement})),
           std::string("the statement names no recent block of this history"));
}

void TestChainRegistryMembers::a_block_has_one_statement_of_a_node() {
  ChainFixture chain;
  const auto nodes = chain.add_nodes(3);
  QVERIFY(chain.begin(nodes).ok());
  BlockBody body;
  body.statements = {chain.statement(nodes[0], Away{}), chain.statement(nodes[0], Back{})};
  QCOMPARE(chain.refusal(body), std::string("the block has two statements of one node"));
  body.statements.assign(max_block_statements + 1, chain.statement(nodes[0], Away{}));
  QCOMPARE(chain.refusal(body), std::string("the block has too many statements"));
  QCOMPARE(chain.refusal(BlockBody{}), std::string("the block is empty"));
  body.statements.resize(1);
  QCOMPARE(chain.refusal(body, 0), std::string("the block's time is not after the one before"));
}

void TestChainRegistryMembers::a_voucher_is_used_once() {
  ChainFixture chain;
  const auto founders = chain.add_nodes(2);
  QVERIFY(chain.begin(founders).ok());
  const std::size_t first = chain.add_node(), second = chain.add_node(), third = chain.add_node();
  QVERIFY(chain.say(first, chain.registration(first, founders[0], 70)));
  QVERIFY(chain.wallet(first)->vouched);
  QCOMPARE(chain.refusal(second, chain.registration(second, founders[0], 70)),
           std::string("the voucher was used before"));
  // The window is 64 wide; lower serials count as used.
  QCOMPARE(chain.refusal(second, chain.registration(second, founders[0], 6)),
           std::string("the voucher was used before"));
  QVERIFY(chain.say(second, chain.registration(second, founders[0], 7)));
  QCOMPARE(chain.refusal(third, chain.registration(third, founders[0], 7)),
           std::string("the voucher was used before"));
  QCOMPARE(chain.refusal(third, chain.registration(third, founders[1], 7)), std::string());
  // For another node than the one that the voucher's key named.
  Register stolen = chain.registration(third, founders[0], 8);
  stolen.voucher = chain.voucher(founders[0], 8, first);
  QCOMPARE(chain.refusal(third, stolen), std::string("a signature of a member's statement does not hold"));
}

void TestChainRegistryMembers::vouchers_come_from_trusted_voters_every_eight_rounds() {
  ChainFixture chain;
  const auto founders = chain.add_nodes(4);
  QVERIFY(chain.begin(founders).ok());
  const auto guests = chain.add_nodes(3);
  QVERIFY(chain.join(guests[0]));
  QCOMPARE(chain.refusal(guests[1], chain.registration(guests[1], guests[0], 1)),
           std::string("the voucher is not from a voter that can vouch"));
  QVERIFY(chain.say(guests[1], chain.registration(guests[1], founders[0], 1)));
  const auto refused = [&] {
    return chain.refusal(guests[2], chain.registration(guests[2], founders[0], 2));
  };
  for (int round = 0; round < 8; ++round) {
    QCOMPARE(refused(), std::string("a voucher of the same wallet was used a few rounds ago"));
    QVERIFY(chain.round_of({founders[0]}));
  }
  QCOMPARE(refused(), std::string());
  Register expired = chain.registration(guests[2], founders[1], 1);
  expired.voucher->expires_ms = chain.registry().time_ms() + 1000;
  sign_voucher(*expired.voucher, chain.key(founders[1]), chain.rules().network);
  QCOMPARE(chain.refusal(guests[2], expired), std::string("the voucher has expired"));

  ChainFixture closed(small_rules(VotersMode::Founders));
  const auto owners = closed.add_nodes(2);
  QVERIFY(closed.begin(owners).ok());
  const std::size_t guest = closed.add_node();
  QCOMPARE(closed.refusal(guest, closed.registration(guest, owners[0], 1)),
           std::string("nobody can be vouched for in this network: its founders alone vote"));
}

void TestChainRegistryMembers::a_registered_member_brings_a_voucher_later() {
  ChainFixture chain;
  const auto founders = chain.add_nodes(2);
  QVERIFY(chain.begin(founders).ok());
  const std::size_t node = chain.add_node();
  QCOMPARE(chain.refusal(node, chain.vouch(node, founders[0], 1)), std::string("the node is not a member"));
  QVERIFY(chain.join(node));
  Vouch other = chain.vouch(node, founders[0], 1);
  other.wallet = chain.wallet_key(founders[1]).public_key();
  QCOMPARE(chain.refusal(node, other), std::string("the voucher is used for another wallet"));
  QVERIFY(chain.say(node, chain.vouch(node, founders[0], 1)));
  QVERIFY(chain.wallet(node)->vouched);
  QCOMPARE(chain.refusal(node, chain.vouch(node, founders[0], 2)),
           std::string("the wallet needs no voucher"));
}

void TestChainRegistryMembers::a_wallets_units_are_divided_among_four_nodes() {
  ChainFixture chain;
  const auto founders = chain.add_nodes(2);
  QVERIFY(chain.begin(founders).ok());
  std::vector<std::size_t> nodes = {founders[0]};
  const std::vector<std::vector<std::uint32_t>> expected = {
      {12}, {6, 6}, {4, 4, 4}, {3, 3, 3, 3}, {3, 3, 3, 3, 0}};
  for (std::size_t count = 1; count <= 5; ++count) {
    if (count > 1) {
      nodes.push_back(chain.add_node_of(chain.wallet_index(founders[0])));
      QVERIFY(chain.join(nodes.back()));
      QCOMPARE(chain.units(nodes.back()), 0u);  // before its first contribution
      QVERIFY(chain.round_of({founders[1]}));   // it came after this round's opening block
      QVERIFY(chain.round_of({nodes.back()}));
    }
    for (std::size_t i = 0; i < count; ++i) QCOMPARE(chain.units(nodes[i]), expected[count - 1][i]);
    QCOMPARE(chain.committee()->units(), 24u);
  }
  // The next one takes the place of a dormant one.
  QVERIFY(chain.say(nodes[1], Away{}));
  QCOMPARE(chain.units(nodes[1]), 0u);
  QCOMPARE(chain.units(nodes[4]), 3u);
}

void TestChainRegistryMembers::a_member_that_leaves_can_register_anew() {
  ChainFixture chain;
  const auto founders = chain.add_nodes(2);
  QVERIFY(chain.begin(founders).ok());
  const std::size_t node = chain.add_node();
  QVERIFY(chain.say(node, chain.registration(node, founders[0], 1)));
  const std::uint32_t before = chain.number(node);
  QVERIFY(chain.round_of({founders[0]}));
  QVERIFY(chain.round_of({node, founders[0]}));
  QVERIFY(chain.is_voter(node));
  QVERIFY(chain.say(node, Leave{}));
  QVERIFY(chain.member(node) == nullptr);
  QVERIFY(!chain.is_voter(node));
  QCOMPARE(chain.registry().voter_count(), std::size_t{2});
  QVERIFY(chain.say(node, chain.registration(node)));
  QVERIFY(chain.number(node) > before);
  QVERIFY(chain.wallet(node)->vouched);  // the voucher is used up, its effect stays
  QVERIFY(!chain.is_voter(node));
  // A candidate without a voucher is forgotten altogether.
  const std::size_t passing = chain.add_node();
  QVERIFY(chain.join(passing));
  const std::size_t wallets = chain.registry().wallets().size();
  QVERIFY(chain.say(passing, Leave{}));
  QVERIFY(chain.wallet(passing) == nullptr);
  QCOMPARE(chain.registry().wallets().size(), wallets - 1);
}

void TestChainRegistryMembers::a_new_hash_chain_holds_two_rounds_later() {
  ChainFixture chain;
  const auto nodes = chain.add_nodes(2);
  QVERIFY(chain.begin(nodes).ok());
  const BeaconChain renewed(Hash256{5}, 3, 100);
  QCOMPARE(chain.refusal(nodes[0], Commit{BeaconChain(Hash256{5}, 2, 100).commitment()}),
           std::string("a new hash chain begins two rounds later"));
  QVERIFY(chain.say(nodes[0], Commit{renewed.commitment()}));
  QCOMPARE(chain.refusal(nodes[0], Commit{renewed.commitment()}),
           std::string("the member has a new hash chain already"));
  QVERIFY(chain.round_of(nodes));
  QVERIFY(chain.member(nodes[0])->next_beacon.has_value());
  QVERIFY(chain.round_of(nodes));
  QVERIFY(!chain.member(nodes[0])->next_beacon);
  QVERIFY(chain.member(nodes[0])->beacon == renewed.commitment());
  BlockBody body;
  body.close = chain.close({{nodes[0]}, {nodes[1]}});
  QCOMPARE(chain.refusal(body), std::string("a contribution reveals a wrong value"));
  Contribution contribution = chain.contribution(nodes[0], 500);
  contribution.reveal = *renewed.reveal(3);
  sign_contribution(contribution, chain.key(nodes[0]), chain.rules().network);
  for (ContributionEntry& entry : body.close->contributions) {
    if (entry.member == chain.number(nodes[0])) entry = entry_of(contribution, entry.member);
  }
  QCOMPARE(chain.refusal(body), std::string());
}

NS_TEST(TestChainRegistryMembers)
#include "test_registry_members.moc"
