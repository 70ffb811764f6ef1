// A node that begins a network refuses proposals, hellos and signatures that could end in a history that is not valid.
#include <QtTest>

#include "tests/support/test_main.h"
#include "tests/unit/chain/open_start_bus.h"

using namespace neuroshard;                // NOLINT
using namespace neuroshard::chain;         // NOLINT
using namespace neuroshard::chain::small;  // NOLINT

class TestOpenStartChecks : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void proposals_that_no_chain_begins_with_are_refused();
  void other_initial_weights_are_noticed();
  void hellos_are_checked();
  void signatures_are_checked();
};

void TestOpenStartChecks::proposals_that_no_chain_begins_with_are_refused() {
  const std::vector<std::uint16_t> order = by_id(3);
  const Party proposer = party_of(order[0]);
  Node node(order[1]);
  OpenStart::Output output;
  const BlockPtr block = genesis_of({order[0], order[1]});
  QCOMPARE(node.propose(proposer, block, {}, &output), Verdict::Busy);  // has not begun itself
  node.tick({});
  QCOMPARE(node.hello(proposer, seconds(1)), Verdict::Taken);
  const auto verdict = [&](const BlockPtr& proposed, const Party& from) {
    return node.propose(from, proposed, seconds(16), &output);
  };
  const auto changed = [&](auto&& change) {
    BlockHeader header = block->header;
    BlockBody body = block->body;
    change(header, body);
    header.body = body_root(body, {});
    return make_block(header, std::move(body), {}, small::network);
  };
  QCOMPARE(verdict(genesis_of({order[0]}), proposer), Verdict::Inadmissible);  // without this node
  QCOMPARE(verdict(block, party_of(order[2])), Verdict::Inadmissible);         // by one that is not in it
  QCOMPARE(
      verdict(changed([](BlockHeader&, BlockBody& body) { body.genesis->anchors[0][0] ^= 1; }), proposer),
      Verdict::Inadmissible);
  QCOMPARE(verdict(changed([](BlockHeader&, BlockBody& body) { body.silent = {0}; }), proposer),
           Verdict::Inadmissible);
  QCOMPARE(verdict(changed([](BlockHeader& header, BlockBody&) { header.registry[0] ^= 1; }), proposer),
           Verdict::Inadmissible);
  QCOMPARE(verdict(changed([](BlockHeader& header, BlockBody&) { header.height = 1; }), proposer),
           Verdict::Inadmissible);
  QCOMPARE(verdict(changed([](BlockHeader&, BlockBody& body) {
                     std::swap(body.genesis->founders[0], body.genesis->founders[1]);
                   }),
                   proposer),
           Verdict::Inadmissible);
  // A minute ahead of this node's clock.
  QCOMPARE(verdict(genesis_of({order[0], order[1]}, seconds(77)), proposer), Verdict::Busy);
  QVERIFY(output.to_all.empty() && !output.to_one);
  QCOMPARE(verdict(block, proposer), Verdict::Taken);
}

// Two nodes with other weights never sign each other's genesis, so a person has to know.
void TestOpenStartChecks::other_initial_weights_are_noticed() {
  const Party other = party_of(1);
  ChainRules rules = rules_of();
  SignatureChecks checks;
  OpenStart begins(rules, {}, other.node, founder_of(other), {{Hash256{2}}, {}}, std::nullopt, checks);
  Node node(0);
  node.tick({});
  begins.tick(at({}), wall_at({}), false);
  QCOMPARE(begins.take(net::Caller{node.party.id, {}}, GenesisHello{founder_of(node.party)}, at({})),
           Verdict::Taken);
  const OpenStart::Output proposed = begins.tick(at(seconds(40)), wall_at(seconds(40)), false);
  const auto* proposal = find_item<GenesisProposal>(proposed);
  QVERIFY(proposal != nullptr);
  OpenStart::Output output;
  // Of a node that never said hello it means nothing.
  node.propose(other, proposal->block, seconds(40), &output);
  QVERIFY(!node.start.refused_anchors());
  QCOMPARE(node.hello(other, seconds(40)), Verdict::Taken);
  QCOMPARE(node.propose(other, proposal->block, seconds(40), &output), Verdict::Inadmissible);
  QVERIFY(node.start.refused_anchors());
}

void TestOpenStartChecks::hellos_are_checked() {
  Node node(0);
  const Party other = party_of(1);
  const Statement good = founder_of(other);
  const auto verdict = [&](const Statement& statement) {
    return node.start.take(net::Caller{other.id, {}}, GenesisHello{statement}, at(seconds(1)));
  };
  QCOMPARE(verdict(good), Verdict::Busy);
  node.tick({});
  QCOMPARE(verdict(founder_of(party_of(2))), Verdict::Malformed);  // over another node's connection
  QCOMPARE(verdict(small::statement_of(other, Away{}, {})), Verdict::Malformed);
  QCOMPARE(verdict(small::statement_of(other, small::registration_of(other), {3, Hash256{1}})),
           Verdict::Malformed);
  Statement forged = good;
  forged.signature[0] ^= 1;
  QCOMPARE(verdict(forged), Verdict::BadSignature);
  // Signed well, but a genesis that names it would not be valid: nobody may spoil it for all.
  Register expired = small::registration_of(other);
  expired.delegation = crypto::delegate(other.wallet, other.node.public_key(), small::network,
                                        WallTime(milliseconds(small::first_ms - 1)), 1);
  QCOMPARE(verdict(small::statement_of(other, expired, {})), Verdict::Inadmissible);
  QCOMPARE(node.start.heard_nodes().size(), std::size_t{0});
  QCOMPARE(verdict(good), Verdict::Taken);
  QCOMPARE(verdict(good), Verdict::Known);
  for (std::uint16_t i = 2; i < 64; ++i) QCOMPARE(node.hello(party_of(i), seconds(2)), Verdict::Taken);
  QCOMPARE(node.hello(party_of(64), seconds(2)), Verdict::Limit);
  QCOMPARE(node.start.heard_nodes().size(), std::size_t{63});
}

void TestOpenStartChecks::signatures_are_checked() {
  const std::vector<std::uint16_t> order = by_id(3);
  Node node(order[0]);
  node.tick({});
  QCOMPARE(node.hello(party_of(order[1]), seconds(1)), Verdict::Taken);
  const auto proposed = node.tick(seconds(15));
  const auto* proposal = find_item<GenesisProposal>(proposed);
  QVERIFY(proposal != nullptr);
  OpenStart::Output output;
  const auto signature_of = [&](std::uint16_t number, const Hash256& block) {
    const Party party = party_of(number);
    const Vote vote{VoteStep::Genesis, 0, {}, 0, block};
    return GenesisSignature{block, party.node.public_key(),
                            sign_vote(vote, 0, party.node, small::network).signature};
  };
  const net::NodeId from = party_of(order[1]).id;
  const Hash256 hash = proposal->block->hash;
  QCOMPARE(node.start.take(from, signature_of(order[1], Hash256{4}), &output), Verdict::Busy);
  QCOMPARE(node.start.take(from, signature_of(order[2], hash), &output), Verdict::NotMember);
  GenesisSignature forged = signature_of(order[1], hash);
  forged.signature[0] ^= 1;
  QCOMPARE(node.start.take(from, forged, &output), Verdict::BadSignature);
  QVERIFY(!output.genesis);
  QCOMPARE(node.start.take(from, signature_of(order[1], hash), &output), Verdict::Taken);
  QVERIFY(output.genesis.has_value());
  QVERIFY(History::begin({node.rules, node.checks, nullptr}, *output.genesis).ok());
  output = {};
  QCOMPARE(node.start.take(from, signature_of(order[1], hash), &output), Verdict::Known);
  QVERIFY(!output.genesis);
}

NS_TEST(TestOpenStartChecks)
#include "test_open_start_checks.moc"
