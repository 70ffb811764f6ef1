// Evidence: two signatures of one key for one place of one history, and nothing else, expel a node.
#include <QtTest>

#include "core/chain/rules.h"
#include "tests/support/test_main.h"
#include "tests/unit/chain/samples.h"

using namespace neuroshard;
using namespace neuroshard::chain;
using test::key_of;

namespace {

crypto::PublicKey node(std::uint8_t number) {
  return key_of(number).public_key();
}

SignedVote vote(Vote what, std::uint8_t block, std::uint8_t signer = 1) {
  what.block = samples::filled(block);
  return sign_vote(what, signer, key_of(signer), samples::network);
}

Vector vector(std::uint32_t last_member, const Hash256& opening = samples::opening, std::uint64_t round = 6) {
  Vector vector = samples::vector(2, {1, last_member});
  vector.opening = opening;
  vector.round = round;
  sign_vector(vector, key_of(2), samples::network);
  return vector;
}

Contribution contribution(std::uint64_t tokens, const Hash256& opening = samples::opening,
                          std::uint64_t round = 6) {
  Contribution contribution = samples::contribution(3, tokens);
  contribution.opening = opening;
  contribution.round = round;
  sign_contribution(contribution, key_of(3), samples::network);
  return contribution;
}

std::vector<Evidence> of_each_kind() {
  return {samples::evidence(1), evidence_of(node(2), vector(2), vector(3)),
          evidence_of(contribution(900), contribution(901))};
}

bool holds(const Evidence& evidence) {
  return evidence_holds(evidence, samples::network);
}

}  // namespace

class TestChainEvidence : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void every_kind_is_canonical();
  void every_kind_holds_for_its_node_and_network_only();
  void the_order_of_the_halves_does_not_matter();
  void one_thing_twice_is_no_evidence();
  void votes_of_different_places_are_no_evidence();
  void votes_of_founders_and_successions_are_no_evidence();
  void vectors_of_different_rounds_are_no_evidence();
  void contributions_of_different_rounds_are_no_evidence();
  void the_size_does_not_grow_with_the_network();
};

void TestChainEvidence::every_kind_is_canonical() {
  for (const Evidence& evidence : of_each_kind()) {
    const Bytes bytes = encode_evidence(evidence);
    QVERIFY(bytes.size() <= max_evidence_bytes);
    QCOMPARE(samples::format_fault(bytes, samples::reencoder(decode_evidence, encode_evidence)),
             std::string());
    QVERIFY(*decode_evidence(bytes) == evidence);
  }
}

void TestChainEvidence::every_kind_holds_for_its_node_and_network_only() {
  for (Evidence evidence : of_each_kind()) {
    QVERIFY(holds(evidence));
    QVERIFY(!evidence_holds(evidence, samples::filled(8)));
    evidence.node = node(9);
    QVERIFY(!holds(evidence));
  }
  const std::vector<Evidence> all = of_each_kind();
  QVERIFY(anchor_block(all[0]) == samples::filled(40));
  QVERIFY(anchor_block(all[1]) == samples::opening);
  QVERIFY(anchor_block(all[2]) == samples::opening);
}

void TestChainEvidence::the_order_of_the_halves_does_not_matter() {
  QVERIFY(evidence_of(node(1), samples::vote(61), samples::vote(60)) == samples::evidence(1));
  QVERIFY(evidence_of(node(2), vector(2), vector(3)) == evidence_of(node(2), vector(3), vector(2)));
  QVERIFY(evidence_of(contribution(1), contribution(2)) == evidence_of(contribution(2), contribution(1)));

  Evidence evidence = samples::evidence(1);
  auto& votes = std::get<TwoVotes>(evidence.what);
  std::swap(votes.first, votes.second);
  QVERIFY(!holds(evidence));
  QVERIFY2(!decode_evidence(encode_evidence(evidence)).ok(), "one proof has two encodings");
}

void TestChainEvidence::one_thing_twice_is_no_evidence() {
  for (const Evidence& evidence :
       {evidence_of(node(1), samples::vote(60), samples::vote(60)),
        evidence_of(node(2), vector(2), vector(2)), evidence_of(contribution(900), contribution(900))}) {
    QVERIFY(!holds(evidence));
    QVERIFY(!decode_evidence(encode_evidence(evidence)).ok());
  }
}

void TestChainEvidence::votes_of_different_places_are_no_evidence() {
  const Vote place = samples::vote().vote;
  QVERIFY(holds(evidence_of(node(1), vote(place, 60), vote(place, 61))));
  std::vector<Vote> others(4, place);
  others[0].view += 1;  // a leader's new proposal
  others[1].height += 1;
  others[2].previous = samples::filled(99);  // of another history
  others[3].step = VoteStep::Commit;
  for (const Vote& other : others) {
    const Evidence evidence = evidence_of(node(1), vote(place, 60), vote(other, 61));
    QVERIFY(!holds(evidence));
    const auto read = decode_evidence(encode_evidence(evidence));  // which has one place for both halves
    QVERIFY(!read.ok() || !holds(*read));
  }
  QVERIFY(holds(evidence_of(node(1), vote(others[3], 60), vote(others[3], 61))));
  QVERIFY(!holds(evidence_of(node(1), vote(place, 60, 1), vote(place, 61, 2))));
}

void TestChainEvidence::votes_of_founders_and_successions_are_no_evidence() {
  for (const VoteStep step : {VoteStep::Genesis, VoteStep::Succession}) {
    Vote place = samples::vote().vote;
    place.step = step;
    place.view = 0;
    const Evidence evidence = evidence_of(node(1), vote(place, 60), vote(place, 61));
    QVERIFY(!holds(evidence));
    QVERIFY(!decode_evidence(encode_evidence(evidence)).ok());
  }
}

void TestChainEvidence::vectors_of_different_rounds_are_no_evidence() {
  QVERIFY(!holds(evidence_of(node(2), vector(2), vector(3, samples::filled(51)))));
  QVERIFY(!holds(evidence_of(node(2), vector(2), vector(3, samples::opening, 7))));
}

void TestChainEvidence::contributions_of_different_rounds_are_no_evidence() {
  QVERIFY(!holds(evidence_of(contribution(900), contribution(901, samples::filled(51)))));
  QVERIFY(!holds(evidence_of(contribution(900), contribution(901, samples::opening, 7))));
  Contribution other = samples::contribution(4, 901);
  QVERIFY(!holds(evidence_of(contribution(900), other)));
}

void TestChainEvidence::the_size_does_not_grow_with_the_network() {
  std::vector<std::uint32_t> everybody(10'000);
  for (std::uint32_t i = 0; i < everybody.size(); ++i) everybody[i] = i;
  Vector large = samples::vector(2, everybody);
  const Evidence evidence = evidence_of(node(2), vector(2), large);
  QVERIFY(holds(evidence));
  QVERIFY(encode_evidence(evidence).size() <= max_evidence_bytes);

  Contribution all_rows = contribution(900);
  all_rows.rows.clear();
  for (std::uint32_t i = 0; i < max_rows; ++i) all_rows.rows.push_back({i, 1, 1, samples::filled(1)});
  sign_contribution(all_rows, key_of(3), samples::network);
  const Evidence other = evidence_of(contribution(900), all_rows);
  QVERIFY(holds(other));
  QVERIFY(encode_evidence(other).size() <= max_evidence_bytes);
}

NS_TEST(TestChainEvidence)
#include "test_evidence.moc"
