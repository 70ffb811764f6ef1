// Expulsion, restricted registries and successions.
#include <QtTest>

#include "tests/support/test_main.h"
#include "tests/unit/chain/chain_fixture.h"

using namespace neuroshard;
using namespace neuroshard::chain;
using neuroshard::chain::testing::ChainFixture;
using neuroshard::chain::testing::small_rules;

namespace {

constexpr std::uint64_t day_ms = 24ull * 3600 * 1000;

Evidence two_votes(const ChainFixture& chain, std::size_t node) {
  const std::uint32_t number = chain.number(node);
  Vote vote{VoteStep::Prepare, chain.registry().height() + 1, chain.hash(), 0, {}};
  vote.block.fill(1);
  const SignedVote first = sign_vote(vote, number, chain.key(node), chain.rules().network);
  vote.block.fill(2);
  return evidence_of(chain.key(node).public_key(), first,
                     sign_vote(vote, number, chain.key(node), chain.rules().network));
}

Evidence two_vectors(const ChainFixture& chain, std::size_t node) {
  Vector first = chain.vector(node, {});
  Vector second = first;
  second.contributions.fill(4);
  sign_vector(second, chain.key(node), chain.rules().network);
  return evidence_of(chain.key(node).public_key(), first, second);
}

Evidence two_contributions(const ChainFixture& chain, std::size_t node) {
  return evidence_of(chain.contribution(node, 500), chain.contribution(node, 501));
}

BlockBody with(Evidence evidence) {
  BlockBody body;
  body.evidence = {std::move(evidence)};
  return body;
}

BlockBody succession_of(const ChainFixture& chain, const std::vector<std::size_t>& nodes) {
  BlockBody body;
  body.succession.emplace();
  for (const std::size_t node : nodes) body.succession->continuing.push_back(chain.number(node));
  std::sort(body.succession->continuing.begin(), body.succession->continuing.end());
  return body;
}

}  // namespace

class TestChainRegistryEvidence : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void every_kind_of_evidence_expels_the_wallet();
  void evidence_of_another_history_expels_nobody();
  void evidence_holds_for_sixty_four_blocks_and_sixteen_rounds();
  void evidence_is_signed_and_against_a_member();
  void the_last_voter_is_not_expelled();
  void a_registry_with_few_active_voters_is_restricted();
  void unvouched_voters_do_not_restrict();
  void a_succession_names_those_that_go_on();
  void a_succession_contains_nothing_else();
};

void TestChainRegistryEvidence::every_kind_of_evidence_expels_the_wallet() {
  for (const auto& proof : {two_votes, two_vectors, two_contributions}) {
    ChainFixture chain;
    const auto nodes = chain.add_nodes(4);
    QVERIFY(chain.begin(nodes).ok());
    const std::size_t second = chain.add_node_of(chain.wallet_index(nodes[0]));
    QVERIFY(chain.join(second));
    const Evidence evidence = proof(chain, nodes[0]);
    QVERIFY(admissible(chain.rules(), chain.registry(), chain.hash(), evidence).ok());
    QVERIFY(chain.append(with(evidence)).ok());
    QVERIFY(chain.member(nodes[0]) == nullptr);
    QVERIFY(chain.member(second) == nullptr);
    QVERIFY(chain.wallet(nodes[0])->expelled);
    QVERIFY(!chain.is_voter(nodes[0]));
    QCOMPARE(chain.committee()->units(), 36u);
    QCOMPARE(chain.refusal(with(evidence)), std::string("the evidence is against no member"));
    QCOMPARE(chain.refusal(nodes[0], chain.registration(nodes[0])), std::string("the wallet is expelled"));
  }
}

void TestChainRegistryEvidence::evidence_of_another_history_expels_nobody() {
  // The same nodes begin with one more: two histories of one network.
  ChainFixture chain, other;
  const auto nodes = chain.add_nodes(4);
  QCOMPARE(other.add_nodes(5).size(), std::size_t{5});
  QVERIFY(chain.begin(nodes).ok());
  QVERIFY(other.begin({0, 1, 2, 3, 4}).ok());
  QVERIFY(chain.key(0).public_key() == other.key(0).public_key());
  QVERIFY(chain.hash() != other.hash());
  for (const auto& proof : {two_votes, two_vectors, two_contributions})
    QCOMPARE(chain.refusal(with(proof(other, nodes[0]))),
             std::string("the evidence is not of this history, or too old"));
}

void TestChainRegistryEvidence::evidence_holds_for_sixty_four_blocks_and_sixteen_rounds() {
  ChainFixture chain;
  const auto nodes = chain.add_nodes(4);
  QVERIFY(chain.begin(nodes).ok());
  const Evidence work = two_contributions(chain, nodes[1]);
  QVERIFY(chain.say(nodes[3], Away{}));
  const Evidence votes = two_votes(chain, nodes[0]);  // after a block that opens no round
  for (int round = 0; round < 15; ++round) {
    QCOMPARE(chain.refusal(with(work)), std::string());
    QVERIFY(chain.round_of({nodes[2]}));
  }
  while (chain.registry().height() < evidence_blocks) {
    QVERIFY(chain.is_active(nodes[3]) ? chain.say(nodes[3], Away{}) : chain.say(nodes[3], Back{}));
  }
  QCOMPARE(chain.refusal(with(votes)), std::string());
  QVERIFY(chain.is_active(nodes[3]) ? chain.say(nodes[3], Away{}) : chain.say(nodes[3], Back{}));
  QCOMPARE(chain.refusal(with(votes)), std::string("the evidence is not of this history, or too old"));
  QCOMPARE(chain.refusal(with(work)), std::string());  // no round has ended since
  QVERIFY(chain.round_of({nodes[2]}));
  QCOMPARE(chain.refusal(with(work)), std::string("the evidence is not of this history, or too old"));
}

void TestChainRegistryEvidence::evidence_is_signed_and_against_a_member() {
  ChainFixture chain;
  const auto nodes = chain.add_nodes(4);
  QVERIFY(chain.begin(nodes).ok());
  Evidence forged = two_votes(chain, nodes[0]);
  std::get<TwoVotes>(forged.what).second.signature[3] ^= 1;
  QCOMPARE(chain.refusal(with(forged)), std::string("a signature of evidence does not hold"));
  BlockBody twice;
  twice.evidence = {two_votes(chain, nodes[0]), two_vectors(chain, nodes[0])};
  QCOMPARE(chain.refusal(twice), std::string("the block's evidence is not ascending by node"));
}

void TestChainRegistryEvidence::the_last_voter_is_not_expelled() {
  ChainFixture chain;
  const auto nodes = chain.add_nodes(2);
  QVERIFY(chain.begin(nodes).ok());
  BlockBody both;
  both.evidence = {two_votes(chain, nodes[0]), two_votes(chain, nodes[1])};
  std::sort(both.evidence.begin(), both.evidence.end(),
            [](const Evidence& a, const Evidence& b) { return a.node < b.node; });
  QCOMPARE(chain.refusal(both), std::string("nobody would vote without the wallet"));
  const BlockBody kept =
      applicable(chain.rules(), chain.registry(), chain.hash(), chain.registry().time_ms() + 1, both);
  QCOMPARE(kept.evidence.size(), std::size_t{1});
  QVERIFY(chain.append(kept).ok());
  QCOMPARE(chain.registry().voter_count(), std::size_t{1});
}

void TestChainRegistryEvidence::a_registry_with_few_active_voters_is_restricted() {
  ChainFixture chain;
  const auto nodes = chain.add_nodes(5);
  QVERIFY(chain.begin(nodes).ok());
  const std::size_t candidate = chain.add_node(), guest = chain.add_node();
  QVERIFY(chain.say(candidate, chain.registration(candidate, nodes[0], 1)));
  QVERIFY(chain.round_of({nodes[0]}));
  QVERIFY(chain.say(nodes[4], Away{}));
  QVERIFY(chain.say(nodes[3], Away{}));
  QVERIFY(!chain.registry().is_restricted());
  QVERIFY(chain.say(nodes[2], Away{}));
  QVERIFY(chain.registry().is_restricted());
  const std::string only =
      "less than half of the voters are active: only presence changes and revocations until more are back";
  QCOMPARE(chain.refusal(guest, chain.registration(guest)), only);
  QCOMPARE(chain.refusal(candidate, Leave{}), only);
  QCOMPARE(chain.refusal(with(two_votes(chain, nodes[0]))),
           std::string("less than half of the voters are active: nobody is expelled until more are back"));
  // Rounds go on; nobody is admitted.
  for (int round = 0; round < 3; ++round) QVERIFY(chain.round_of({nodes[0], nodes[1], candidate}));
  QVERIFY(!chain.is_voter(candidate));
  QVERIFY(chain.wallet(candidate)->qualifying >= chain.rules().admission_contributions);
  // A wallet that was not seen for seven days does not count.
  QVERIFY(chain.say(candidate, Away{}, 7 * day_ms));
  QVERIFY(!chain.registry().is_restricted());
  QCOMPARE(chain.refusal(guest, chain.registration(guest)), std::string());
  QVERIFY(chain.round_of({nodes[0], nodes[1]}));
  QVERIFY(chain.is_voter(candidate));
}

void TestChainRegistryEvidence::unvouched_voters_do_not_restrict() {
  ChainRules rules = small_rules(VotersMode::Open);
  ChainFixture chain(rules);
  const auto nodes = chain.add_nodes(2);
  QVERIFY(chain.begin(nodes).ok());
  const auto strangers = chain.add_nodes(5);
  for (const std::size_t node : strangers) QVERIFY(chain.join(node));
  QVERIFY(chain.round_of(nodes));
  std::vector<std::size_t> all = nodes;
  all.insert(all.end(), strangers.begin(), strangers.end());
  for (int round = 0; round < 8; ++round) QVERIFY(chain.round_of(all));
  QCOMPARE(chain.registry().voter_count(), std::size_t{7});
  for (const std::size_t node : strangers) QVERIFY(chain.say(node, Away{}));
  QVERIFY(!chain.registry().is_restricted());
}

void TestChainRegistryEvidence::a_succession_names_those_that_go_on() {
  ChainFixture chain;
  const auto nodes = chain.add_nodes(4);
  QVERIFY(chain.begin(nodes).ok());
  const std::size_t candidate = chain.add_node();
  QVERIFY(chain.join(candidate));
  QVERIFY(chain.say(nodes[1], Away{}));
  QCOMPARE(chain.refusal(succession_of(chain, {candidate})),
           std::string("a succession names a node that is no voter's, or was dormant for too long"));
  BlockBody body = succession_of(chain, {nodes[0], nodes[1]});
  std::swap(body.succession->continuing[0], body.succession->continuing[1]);
  QCOMPARE(chain.refusal(body), std::string("a succession's voters are not ascending"));
  body.succession->continuing.clear();
  QCOMPARE(chain.refusal(body), std::string("a succession names the voters that continue"));
  // Also long after the last block: the chain's own time counts.
  QVERIFY(chain.append(succession_of(chain, {nodes[0], nodes[1]}), 40 * day_ms).ok());
  QVERIFY(chain.is_active(nodes[0]));
  QVERIFY(chain.is_active(nodes[1]));
  QVERIFY(!chain.is_active(nodes[2]));
  QVERIFY(!chain.is_active(nodes[3]));
  QVERIFY(chain.is_active(candidate));
  QCOMPARE(chain.committee()->units(), 24u);
  QVERIFY(chain.say(nodes[2], Back{}));
  QCOMPARE(chain.committee()->units(), 36u);
}

void TestChainRegistryEvidence::a_succession_contains_nothing_else() {
  ChainFixture chain;
  const auto nodes = chain.add_nodes(4);
  QVERIFY(chain.begin(nodes).ok());
  BlockBody body = succession_of(chain, {nodes[0]});
  body.statements = {chain.statement(nodes[1], Away{})};
  QCOMPARE(chain.refusal(body), std::string("a succession block has something else in it"));
  // A fifth node of a wallet has no units, so it can't sign for the chain.
  const std::size_t second = chain.add_node_of(chain.wallet_index(nodes[0]));
  QVERIFY(chain.join(second));
  QCOMPARE(chain.refusal(succession_of(chain, {nodes[0], second})),
           std::string("a succession names a node that would have no units"));
}

NS_TEST(TestChainRegistryEvidence)
#include "test_registry_evidence.moc"
