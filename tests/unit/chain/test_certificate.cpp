// Certificates: whose signatures make a block the one of its height.
#include <QtTest>

#include "tests/support/test_main.h"
#include "tests/unit/chain/chain_fixture.h"

using namespace neuroshard;
using namespace neuroshard::chain;
using neuroshard::chain::testing::ChainFixture;
using neuroshard::chain::testing::small_rules;

namespace {

struct Setup : ChainFixture {
  explicit Setup(VotersMode mode = VotersMode::Open) : ChainFixture(small_rules(mode)) {
    nodes = add_nodes(4);
    NS_CHECK(begin(nodes).ok());
    presence = *propose(body_of({statement(nodes[3], Away{})}));
    candidate = add_node();
    joining = *propose(body_of({statement(candidate, registration(candidate))}));
  }
  std::string refusal_of(const Certificate& certificate, const BlockPtr& block) {
    const auto result = check_certificate(certificate, *block, *committee(), rules().network, checks);
    return result.ok() ? std::string() : result.error().message;
  }
  std::vector<std::size_t> first(std::size_t count) const {
    return {nodes.begin(), nodes.begin() + static_cast<std::ptrdiff_t>(count)};
  }
  Certificate commits(const BlockPtr& block, std::size_t count, std::uint32_t view = 0) const {
    return {quorum(VoteStep::Commit, *block, first(count), view), {}};
  }
  struct Counting : SignatureChecks {
    std::size_t calls = 0;
    bool vote(const SignedVote& vote, const crypto::PublicKey& node, const Hash256& network) override {
      ++calls;
      return SignatureChecks::vote(vote, node, network);
    }
    std::size_t quorums = 0;
    bool quorum(const Quorum& quorum, Span<const crypto::PublicKey> nodes, const Hash256& network) override {
      ++quorums;
      return SignatureChecks::quorum(quorum, nodes, network);
    }
  } checks;
  std::vector<std::size_t> nodes;
  std::size_t candidate = 0;
  BlockPtr presence, joining;
};

}  // namespace

class TestChainCertificate : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void more_than_two_thirds_certify_any_block();
  void a_stall_quorum_certifies_presence_changes();
  void a_stall_quorum_certifies_what_was_locked();
  void signers_are_distinct_and_of_the_committee();
  void nothing_is_verified_of_a_quorum_that_is_too_small();
  void a_genesis_is_signed_by_all_founders();
  void a_succession_is_signed_by_all_that_go_on();
};

void TestChainCertificate::more_than_two_thirds_certify_any_block() {
  Setup chain;
  QCOMPARE(chain.refusal_of(chain.commits(chain.joining, 3), chain.joining), std::string());
  QCOMPARE(chain.refusal_of(chain.commits(chain.joining, 4, 2), chain.joining), std::string());
  QCOMPARE(chain.refusal_of(chain.commits(chain.joining, 2), chain.joining),
           std::string("the certificate has too few signers"));
  QCOMPARE(chain.refusal_of(chain.commits(chain.presence, 4), chain.joining),
           std::string("the certificate is for another block or step"));
  Certificate certificate{chain.quorum(VoteStep::Prepare, *chain.joining, chain.nodes), {}};
  QCOMPARE(chain.refusal_of(certificate, chain.joining),
           std::string("the certificate is for another block or step"));
  certificate = chain.commits(chain.joining, 4);
  certificate.commits.signatures[2].signature[0] ^= 1;
  QCOMPARE(chain.refusal_of(certificate, chain.joining),
           std::string("a signature of a quorum does not hold"));
  certificate = chain.commits(chain.joining, 4);
  certificate.commits.view = 1;  // signed in another view
  QCOMPARE(chain.refusal_of(certificate, chain.joining),
           std::string("a signature of a quorum does not hold"));
  const Quorum whole = chain.quorum(VoteStep::Commit, *chain.joining, chain.nodes);
  QCOMPARE(*check_quorum(whole, *chain.committee(), chain.rules().network, chain.checks), std::uint64_t{48});
}

void TestChainCertificate::a_stall_quorum_certifies_presence_changes() {
  // Of three, two are more than five eighths and not more than two thirds.
  ChainFixture chain(small_rules(VotersMode::Open));
  const auto nodes = chain.add_nodes(3);
  QVERIFY(chain.begin(nodes).ok());
  const std::size_t candidate = chain.add_node();
  const BlockPtr presence = *chain.propose(ChainFixture::body_of({chain.statement(nodes[2], Away{})}));
  BlockBody silent;
  silent.silent = {chain.number(nodes[2])};
  const BlockPtr marks = *chain.propose(silent);
  const BlockPtr joining =
      *chain.propose(ChainFixture::body_of({chain.statement(candidate, chain.registration(candidate))}));
  SignatureChecks checks;
  const auto refusal = [&](const BlockPtr& block) {
    const Certificate certificate{chain.quorum(VoteStep::Commit, *block, {nodes[0], nodes[1]}), {}};
    const auto result =
        check_certificate(certificate, *block, *chain.committee(), chain.rules().network, checks);
    return result.ok() ? std::string() : result.error().message;
  };
  QCOMPARE(refusal(presence), std::string());
  QCOMPARE(refusal(marks), std::string());
  QCOMPARE(refusal(joining),
           std::string("a stall quorum certifies presence changes only, or what was locked before"));
  // Two of four are the half, which is too few in each mode.
  Setup four, invited(VotersMode::Invited);
  QCOMPARE(four.refusal_of(four.commits(four.presence, 2), four.presence),
           std::string("the certificate has too few signers"));
  QCOMPARE(invited.refusal_of(invited.commits(invited.presence, 2), invited.presence),
           std::string("the certificate has too few signers"));
}

void TestChainCertificate::a_stall_quorum_certifies_what_was_locked() {
  ChainFixture chain(small_rules(VotersMode::Open));
  const auto nodes = chain.add_nodes(3);
  QVERIFY(chain.begin(nodes).ok());
  const std::size_t candidate = chain.add_node();
  const BlockPtr block =
      *chain.propose(ChainFixture::body_of({chain.statement(candidate, chain.registration(candidate))}));
  SignatureChecks checks;
  const auto refusal = [&](const Certificate& certificate) {
    const auto result =
        check_certificate(certificate, *block, *chain.committee(), chain.rules().network, checks);
    return result.ok() ? std::string() : result.error().message;
  };
  const Quorum two = chain.quorum(VoteStep::Commit, *block, {nodes[0], nodes[1]}, 4);
  QCOMPARE(refusal({two, chain.quorum(VoteStep::Prepare, *block, nodes, 1)}), std::string());
  QCOMPARE(refusal({two, chain.quorum(VoteStep::Prepare, *block, {nodes[0], nodes[1]}, 1)}),
           std::string("the certificate's lock has too few signers"));
  QCOMPARE(refusal({two, chain.quorum(VoteStep::Prepare, *block, nodes, 5)}),
           std::string("the certificate's lock is for another block or a later view"));
  QCOMPARE(refusal({two, chain.quorum(VoteStep::Commit, *block, nodes, 1)}),
           std::string("the certificate's lock is for another block or a later view"));
  Quorum forged = chain.quorum(VoteStep::Prepare, *block, nodes, 1);
  forged.signatures[2].signature[0] ^= 1;
  QCOMPARE(refusal({two, forged}), std::string("a signature of a quorum does not hold"));
  QCOMPARE(refusal({chain.quorum(VoteStep::Commit, *block, nodes, 4),
                    chain.quorum(VoteStep::Prepare, *block, nodes, 1)}),
           std::string("the certificate has a lock that it does not need"));
}

void TestChainCertificate::signers_are_distinct_and_of_the_committee() {
  Setup chain;
  Certificate certificate = chain.commits(chain.joining, 4);
  certificate.commits.signatures[1] = certificate.commits.signatures[0];
  QCOMPARE(chain.refusal_of(certificate, chain.joining), std::string("a quorum's signers are not ascending"));
  certificate = chain.commits(chain.joining, 4);
  certificate.commits.signatures[3].voter = 9;
  QCOMPARE(chain.refusal_of(certificate, chain.joining),
           std::string("a signer of a quorum is not in the committee"));
  certificate = chain.commits(chain.joining, 4);
  certificate.commits.signatures.push_back(certificate.commits.signatures[3]);
  QCOMPARE(chain.refusal_of(certificate, chain.joining), std::string("a quorum has too many signatures"));
}

void TestChainCertificate::nothing_is_verified_of_a_quorum_that_is_too_small() {
  Setup chain;
  QVERIFY(!chain.refusal_of(chain.commits(chain.joining, 2), chain.joining).empty());
  QCOMPARE(chain.checks.calls, std::size_t{0});
  QCOMPARE(chain.checks.quorums, std::size_t{0});
  QVERIFY(chain.refusal_of(chain.commits(chain.joining, 3), chain.joining).empty());
  QCOMPARE(chain.checks.calls, std::size_t{3});
  QCOMPARE(chain.checks.quorums, std::size_t{1});
}

void TestChainCertificate::a_genesis_is_signed_by_all_founders() {
  Setup chain;
  const CertifiedBlock genesis = chain.certified_genesis();
  QCOMPARE(chain.refusal_of(*genesis.certificate, genesis.block), std::string());
  Certificate certificate = *genesis.certificate;
  certificate.commits.signatures.pop_back();
  QCOMPARE(chain.refusal_of(certificate, genesis.block),
           std::string("the certificate is not signed by all nodes that the block names"));
  certificate = *genesis.certificate;
  std::swap(certificate.commits.signatures[0].signature, certificate.commits.signatures[1].signature);
  QCOMPARE(chain.refusal_of(certificate, genesis.block),
           std::string("a signature of a certificate does not hold"));
}

void TestChainCertificate::a_succession_is_signed_by_all_that_go_on() {
  ChainFixture chain;
  const auto nodes = chain.add_nodes(4);
  QVERIFY(chain.begin(nodes).ok());
  QVERIFY(chain.say(nodes[1], Away{}));
  BlockBody body;
  body.succession = SuccessionSection{{chain.number(nodes[0]), chain.number(nodes[1])}};
  std::sort(body.succession->continuing.begin(), body.succession->continuing.end());
  const BlockPtr block = *chain.propose(body);
  const Certificate complete{chain.quorum(VoteStep::Succession, *block, {nodes[0], nodes[1]}), {}};
  const Certificate half{chain.quorum(VoteStep::Succession, *block, {nodes[0]}), {}};
  const Certificate commits{chain.quorum(VoteStep::Commit, *block, nodes), {}};
  const CommitteePtr before = chain.committee();
  QVERIFY(chain.append(block).ok());
  SignatureChecks checks;
  const auto refusal = [&](const Certificate& certificate, const Committee& committee) {
    const auto result = check_certificate(certificate, *block, committee, chain.rules().network, checks);
    return result.ok() ? std::string() : result.error().message;
  };
  QCOMPARE(refusal(complete, *chain.committee()), std::string());
  QCOMPARE(refusal(half, *chain.committee()),
           std::string("the certificate is not signed by all nodes that the block names"));
  QCOMPARE(refusal(commits, *chain.committee()), std::string("the certificate is for another block or step"));
  QCOMPARE(refusal(complete, *before), std::string("the voters of a succession are not those that it names"));
}

NS_TEST(TestChainCertificate)
#include "test_certificate.moc"
