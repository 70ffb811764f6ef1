// Accusations of false results: what a node believes, whom it asks for a proof and how often, and what it forgets.
#include <QtTest>

#include "core/net/peer_channel.h"
#include "core/rounds/accusations.h"
#include "tests/support/test_main.h"
#include "tests/unit/rounds/chain_round.h"
#include "tests/unit/rounds/row_sources.h"

using namespace neuroshard;
using namespace neuroshard::rounds;
using chain::Evidence;
using chain::Verdict;
using test::Round;
using Finding = Accusations::Finding;

namespace {

const net::NodeId one_peer = Round::id_of(60), other_peer = Round::id_of(61);

class EvidenceChecks final : public chain::SignatureChecks {
 public:
  bool evidence(const Evidence& evidence, const Hash256& network) override {
    ++count;
    return chain::evidence_holds(evidence, network);
  }
  int count = 0;
};

struct AccusationsBench {
  explicit AccusationsBench(std::uint32_t rows = 2)
      : rules([&] {
          chain::ChainRules made = network.chain.rules();
          made.rows = rows;
          return made;
        }()) {}

  // Of a result that is wrong in this chunk, and its proof, which peers give.
  Evidence right_evidence(std::uint64_t chunk, std::size_t holder = 0) {
    const StepPtr wrong = network.round->with_changed_weights(chunk);
    const Bytes proof = encode_row_proof(network.round->proof(chunk, *wrong));
    node.sources.add_proof(proof);
    return network.accusation(holder, *wrong, proof);
  }
  // Of the honest result. Peers give the proof; it has the right form, and finds nothing wrong.
  Evidence false_evidence(std::uint64_t chunk, std::size_t holder = 0) {
    const Bytes proof = encode_row_proof(network.round->proof(chunk, *network.round->step));
    node.sources.add_proof(proof);
    return network.accusation(holder, *network.round->step, proof);
  }
  Verdict take(const net::NodeId& from, const Evidence& evidence) {
    return accusations.take(from, evidence, network.tip());
  }
  Finding examine(const Evidence& evidence, std::vector<net::NodeId> sources = {one_peer, other_peer}) {
    return accusations.examine(evidence, network.tip(), sources);
  }
  void run() { world.run_for(std::chrono::minutes(5)); }
  std::size_t asked() const { return node.sources.asked.size(); }
  // The proof, as a peer gets it in pieces; empty: it is not served.
  Bytes served(const Evidence& evidence) const {
    PieceRequest request{0, PieceRequest::What::Proof, std::get<chain::FalseResult>(evidence.what).proof, 0};
    Bytes whole;
    for (;;) {
      request.place = whole.size();
      const auto answer = accusations.piece(request);
      if (!answer.ok()) return {};
      const PieceAnswer piece = *decode_piece_answer(*answer);
      whole.insert(whole.end(), piece.bytes.begin(), piece.bytes.end());
      if (whole.size() == piece.whole) return whole;
    }
  }
  bool serves(const Evidence& evidence) const {
    const Bytes proof = served(evidence);
    return !proof.empty() && crypto::sha256(proof) == std::get<chain::FalseResult>(evidence.what).proof;
  }

  test::ChainRound network;
  const chain::ChainRules rules;
  sim::World world;
  test::RowNode node{world, *network.round};
  EvidenceChecks checks;
  std::vector<Evidence> proven;
  Accusations accusations{{node.fetcher, node.work, checks},
                          rules,
                          network.round->rules,
                          [this](std::uint32_t, std::uint64_t) { return network.row(); },
                          [this](const Evidence& evidence) { proven.push_back(evidence); }};
};

// The same, with another proof that nobody has.
Evidence with_proof(Evidence evidence, std::uint8_t mark, std::uint32_t bytes) {
  auto& what = std::get<chain::FalseResult>(evidence.what);
  what.proof.fill(mark);
  what.proof_bytes = bytes;
  return evidence;
}

}  // namespace

class TestAccusations : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void own_evidence_is_told_once_and_its_proof_is_served() {
    AccusationsBench bench;
    const StepPtr wrong = bench.network.round->with_changed_weights(1);
    const RowProof proof = bench.network.round->proof(1, *wrong);
    const Bytes bytes = encode_row_proof(proof);
    QVERIFY(bytes.size() > 2 * net::chunk_bytes);  // several pieces
    const Evidence own = bench.network.accusation(0, *wrong, bytes);
    bench.accusations.add(own, proof);
    QCOMPARE(bench.proven.size(), std::size_t{1});
    QVERIFY(bench.proven.front() == own);
    QVERIFY(bench.served(own) == bytes);
    QVERIFY(bench.served(bench.right_evidence(0)).empty());
    // Others that say the same are not asked for anything.
    QCOMPARE(bench.take(one_peer, own), Verdict::Known);
    QCOMPARE(bench.examine(own), Finding::Right);
    bench.run();
    QCOMPARE(bench.asked(), std::size_t{0});
    QCOMPARE(bench.proven.size(), std::size_t{1});
  }

  void a_right_proof_of_a_peer_is_told_on() {
    AccusationsBench bench;
    const Evidence evidence = bench.right_evidence(0);
    QCOMPARE(bench.take(one_peer, evidence), Verdict::Taken);
    QVERIFY(bench.proven.empty());
    QVERIFY(!bench.serves(evidence));
    bench.run();
    QCOMPARE(bench.proven.size(), std::size_t{1});
    QVERIFY(bench.proven.front() == evidence);
    QVERIFY(bench.serves(evidence));
    QCOMPARE(bench.node.sources.asked_of(one_peer), bench.asked());
    QCOMPARE(bench.take(other_peer, evidence), Verdict::Known);
    QCOMPARE(bench.examine(evidence), Finding::Right);
    // It may send the next one now.
    QCOMPARE(bench.take(one_peer, bench.right_evidence(1)), Verdict::Taken);
    bench.run();
    QCOMPARE(bench.proven.size(), std::size_t{2});
  }

  void no_proof_is_asked_for_after_a_cheap_check_fails() {
    {
      AccusationsBench all_rows(1);  // members hold all rows: nobody checks others
      QCOMPARE(all_rows.take(one_peer, all_rows.right_evidence(0)), Verdict::Inadmissible);
      QCOMPARE(all_rows.asked(), std::size_t{0});
    }
    AccusationsBench bench;
    const Evidence right = bench.right_evidence(0);
    QCOMPARE(bench.take(one_peer, with_proof(right, 1, max_proof_bytes + 1)), Verdict::Inadmissible);
    Evidence unknown = right;
    unknown.node = test::key_numbered(9999).public_key();
    QCOMPARE(bench.take(one_peer, unknown), Verdict::Inadmissible);
    QCOMPARE(bench.checks.count, 0);
    Evidence unsigned_one = right;
    std::get<chain::FalseResult>(unsigned_one.what).attested.signature[0] ^= 1;
    QCOMPARE(bench.take(one_peer, unsigned_one), Verdict::Inadmissible);
    QCOMPARE(bench.checks.count, 1);
    QCOMPARE(bench.asked(), std::size_t{0});
    // Control: one that passes. It costs one signature and one fetch, whoever repeats it.
    QCOMPARE(bench.take(one_peer, with_proof(right, 1, max_proof_bytes)), Verdict::Taken);
    const std::size_t asked = bench.asked();
    QVERIFY(asked > 0);
    QCOMPARE(bench.take(other_peer, with_proof(right, 1, max_proof_bytes)), Verdict::Limit);
    QCOMPARE(bench.take(one_peer, right), Verdict::Limit);  // a second one of a busy peer
    QCOMPARE(bench.checks.count, 2);
    QCOMPARE(bench.asked(), asked);
    QCOMPARE(bench.take(other_peer, right), Verdict::Taken);
    bench.run();
    QCOMPARE(bench.proven.size(), std::size_t{1});
  }

  void evidence_of_a_settled_row_is_not_taken() {
    AccusationsBench bench;
    const Evidence right = bench.right_evidence(0), early = bench.right_evidence(1);
    const auto next = [&] {
      bench.network.close_empty();
      bench.network.end_empty();
    };
    bench.network.end(bench.network.round->attested);
    next();
    QCOMPARE(bench.take(one_peer, early), Verdict::Taken);  // the second round after it has no result yet
    const std::size_t asked = bench.asked();
    next();
    QVERIFY(bench.network.open() == nullptr);
    QCOMPARE(bench.take(other_peer, right), Verdict::Inadmissible);
    QCOMPARE(bench.examine(right), Finding::Wrong);
    QCOMPARE(bench.asked(), asked);
  }

  void room_for_accusations_has_an_end() {
    AccusationsBench bench;
    const Evidence right = bench.right_evidence(0);
    constexpr std::uint8_t most = 64;
    for (std::uint8_t i = 0; i < most; ++i)
      QCOMPARE(bench.take(Round::id_of(1000 + i), with_proof(right, i, 1000)), Verdict::Taken);
    QCOMPARE(bench.take(one_peer, right), Verdict::Limit);
    QCOMPARE(bench.examine(right), Finding::Wait);  // of a proposed block: it is asked for anyway
    bench.run();
    QCOMPARE(bench.examine(right), Finding::Right);
  }

  void a_useless_proof_costs_its_peer_the_round() {
    AccusationsBench bench;
    const Evidence useless = bench.false_evidence(0), right = bench.right_evidence(1),
                   next = bench.right_evidence(2);
    QCOMPARE(bench.take(one_peer, useless), Verdict::Taken);
    bench.run();
    QVERIFY(bench.proven.empty());
    QVERIFY(!bench.serves(useless));
    const std::size_t asked = bench.asked();
    QCOMPARE(bench.take(one_peer, right), Verdict::Inadmissible);
    QCOMPARE(bench.take(other_peer, useless), Verdict::Inadmissible);
    QCOMPARE(bench.examine(useless), Finding::Wrong);
    QCOMPARE(bench.asked(), asked);
    // A peer that repeats it gave no proof, and its evidence is taken.
    QCOMPARE(bench.take(other_peer, right), Verdict::Taken);
    bench.run();
    QCOMPARE(bench.proven.size(), std::size_t{1});
    // A block of the same round changes nothing, one of the next round does.
    bench.accusations.on_block(bench.network.tip());
    QCOMPARE(bench.take(one_peer, next), Verdict::Inadmissible);
    bench.network.end(bench.network.round->attested);
    bench.accusations.on_block(bench.network.tip());
    QCOMPARE(bench.take(one_peer, next), Verdict::Taken);
    bench.run();
    QCOMPARE(bench.proven.size(), std::size_t{2});
  }

  void bytes_that_are_no_proof_are_useless() {
    AccusationsBench bench;
    const Bytes bytes(1000, 7);
    bench.node.sources.add_proof(bytes);
    const Evidence evidence =
        bench.network.accusation(0, *bench.network.round->with_changed_weights(0), bytes);
    QCOMPARE(bench.take(one_peer, evidence), Verdict::Taken);
    bench.run();
    QVERIFY(bench.proven.empty());
    QCOMPARE(bench.take(one_peer, bench.right_evidence(0)), Verdict::Inadmissible);
  }

  // The peer has it no more, or gives other bytes: the proof is asked of the next peer that says the same.
  void a_proof_that_does_not_come_is_asked_of_another() {
    for (const bool wrong : {false, true}) {
      AccusationsBench bench;
      const Evidence right = bench.right_evidence(0);
      bench.node.sources.script = [&](const net::NodeId& of,
                                      const PieceRequest& request) -> std::optional<Expected<Bytes>> {
        if (of != one_peer) return std::nullopt;
        return wrong ? bench.node.sources.wrong(request) : Expected<Bytes>(piece_not_held());
      };
      QCOMPARE(bench.take(one_peer, right), Verdict::Taken);
      bench.run();
      QVERIFY(bench.proven.empty());
      QCOMPARE(bench.node.work.jobs, std::size_t{0});
      const std::size_t asked = bench.node.sources.asked_of(one_peer);
      QVERIFY(asked > 0);
      QCOMPARE(bench.take(other_peer, right), Verdict::Taken);
      bench.run();
      QCOMPARE(bench.proven.size(), std::size_t{1});
      QCOMPARE(bench.node.sources.asked_of(one_peer), asked);
    }
  }

  void a_proof_that_does_not_come_keeps_no_other_evidence_out() {
    AccusationsBench bench;
    const Evidence right = bench.right_evidence(0);
    for (std::uint8_t i = 0; i < 100; ++i) {  // more than there is room for
      QCOMPARE(bench.take(one_peer, with_proof(right, i, 1000)), Verdict::Taken);
      QCOMPARE(bench.take(one_peer, right), Verdict::Limit);  // one after the other
      bench.run();
    }
    QVERIFY(bench.proven.empty());
    QCOMPARE(bench.take(one_peer, right), Verdict::Taken);
    bench.run();
    QCOMPARE(bench.proven.size(), std::size_t{1});
  }

  void a_block_with_a_right_proof_waits_for_it() {
    AccusationsBench bench;
    const Evidence right = bench.right_evidence(2);
    bench.node.sources.unknown = {one_peer};
    QCOMPARE(bench.examine(right), Finding::Wait);
    const std::size_t asked = bench.asked();
    QCOMPARE(bench.examine(right), Finding::Wait);  // as often as the block is looked at
    QCOMPARE(bench.asked(), asked);
    bench.run();
    QCOMPARE(bench.examine(right), Finding::Right);
    QCOMPARE(bench.node.sources.asked_of(other_peer), bench.asked());
    QCOMPARE(bench.proven.size(), std::size_t{1});
    QVERIFY(bench.serves(right));
  }

  void a_block_with_a_false_proof_is_wrong() {
    AccusationsBench bench;
    const Evidence useless = bench.false_evidence(1);
    QCOMPARE(bench.examine(useless), Finding::Wait);
    bench.run();
    QCOMPARE(bench.examine(useless), Finding::Wrong);
    QVERIFY(bench.proven.empty());
    // The nodes that gave the proof on request accused nobody.
    QCOMPARE(bench.take(one_peer, bench.right_evidence(0)), Verdict::Taken);
    // No block can have this evidence, so no proof is asked for.
    const std::size_t asked = bench.asked();
    QCOMPARE(bench.examine(with_proof(useless, 1, max_proof_bytes + 1)), Finding::Wrong);
    Evidence unknown = bench.right_evidence(2);
    unknown.node = test::key_numbered(9999).public_key();
    QCOMPARE(bench.examine(unknown), Finding::Wrong);
    QCOMPARE(bench.asked(), asked);
  }

  void a_block_waits_as_long_as_nobody_has_the_proof() {
    AccusationsBench bench;
    const Evidence lost = with_proof(bench.right_evidence(0), 5, 1000);
    for (int look = 0; look < 3; ++look) {
      const std::size_t asked = bench.asked();
      QCOMPARE(bench.examine(lost), Finding::Wait);
      QVERIFY(bench.asked() > asked);  // each time anew
      bench.run();
    }
    QVERIFY(bench.proven.empty());
  }

  void settled_rows_are_forgotten() {
    AccusationsBench bench;
    const Evidence right = bench.right_evidence(0);
    QCOMPARE(bench.take(one_peer, right), Verdict::Taken);
    bench.run();
    bench.network.end(bench.network.round->attested);
    for (std::uint64_t round = 0; round < chain::rounds_to_settle; ++round) {
      bench.accusations.on_block(bench.network.tip());
      QVERIFY(bench.serves(right));
      bench.network.close_empty();
      bench.network.end_empty();
    }
    bench.accusations.on_block(bench.network.tip());
    QVERIFY(!bench.serves(right));
    QCOMPARE(bench.proven.size(), std::size_t{1});
  }

  // This node takes over another history, in which the row's round is not closed: there is no record of it.
  void another_history_forgets_all_of_this_one() {
    test::ChainRoundOptions elsewhere;
    elsewhere.first_key = 5000;
    const test::ChainRound other(elsewhere);
    QVERIFY(other.opening.registry->open_rows().empty());
    for (const bool told : {true, false}) {
      AccusationsBench bench;
      const Evidence proven = bench.right_evidence(0), under_way = bench.right_evidence(1),
                     failed = with_proof(proven, 5, 1000), of_block = with_proof(proven, 6, 1000);
      QCOMPARE(bench.take(one_peer, failed), Verdict::Taken);
      QCOMPARE(bench.take(other_peer, proven), Verdict::Taken);
      QCOMPARE(bench.examine(of_block), Finding::Wait);
      bench.run();
      QCOMPARE(bench.proven.size(), std::size_t{1});
      QCOMPARE(bench.take(other_peer, under_way), Verdict::Taken);
      if (told) bench.accusations.on_block(other.opening);
      // Before the other history is known, and after.
      const std::size_t asked = bench.asked();
      QCOMPARE(bench.accusations.take(one_peer, of_block, other.opening),
               told ? Verdict::Inadmissible : Verdict::Past);
      QCOMPARE(bench.accusations.examine(of_block, other.opening, {one_peer}), Finding::Wrong);
      QCOMPARE(bench.accusations.examine(failed, other.opening, {one_peer}), Finding::Wrong);
      QCOMPARE(bench.asked(), asked);
      bench.run();
      QCOMPARE(bench.proven.size(), std::size_t(told ? 1 : 2));
      QCOMPARE(bench.serves(proven), !told);
      bench.accusations.on_block(other.opening);
      QVERIFY(!bench.serves(proven) && !bench.serves(under_way));
    }
  }
};

NS_TEST(TestAccusations)
#include "test_accusations.moc"
