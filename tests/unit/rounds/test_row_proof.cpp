// Proofs about one chunk of a row's step: right for an honest result, wrong for every false one, and never against a result
// that they do not belong to.
#include <QtTest>

#include "tests/support/test_main.h"
#include "tests/unit/rounds/row_round.h"

using namespace neuroshard;
using namespace neuroshard::rounds;
using test::Round;

class TestRowProof : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void an_honest_result_is_right_in_each_chunk_data() {
    QTest::addColumn<int>("codec");
    QTest::addColumn<int>("contributors");
    for (const auto codec : {outer::Codec::Fp32, outer::Codec::Fp16, outer::Codec::Int8, outer::Codec::Int4})
      for (const int n : {1, 2, 5, 9})
        QTest::addRow("%s, %d", std::string(outer::to_string(codec)).c_str(), n)
            << static_cast<int>(codec) << n;
  }
  void an_honest_result_is_right_in_each_chunk() {
    QFETCH(int, codec);
    QFETCH(int, contributors);
    const Round round(static_cast<outer::Codec>(codec), static_cast<std::size_t>(contributors));
    for (std::uint64_t chunk = 0; chunk < round.chunks(); ++chunk) {
      const RowProof proof = round.proof(chunk, *round.step);
      QCOMPARE(round.find(round.attested, proof), ProofFinding::Right);
      const Bytes bytes = encode_row_proof(proof);
      QVERIFY(bytes.size() <= max_proof_bytes);
      const auto read = decode_row_proof(bytes);
      QVERIFY(read.ok() && *read == proof);
    }
  }

  void what_differs_is_proven_wrong() {
    const Round round(outer::Codec::Int8, 3);
    // A result of other deltas: another's payload in place of one.
    Round other(outer::Codec::Int8, 3);
    other.inputs[1].payload = in_memory(*outer::encode(other.rules.codec, Round::drawn(77, 0.03f)));
    const StepPtr made =
        *make_step(other.rules, other.row.identity, *other.before, other.inputs, other.limits, other.spool);
    chain::RowResult wrong = round.attested;
    wrong.anchor = made->hash;
    wrong.trace = made->trace->root;
    for (std::uint64_t chunk = 0; chunk < round.chunks(); ++chunk)
      QCOMPARE(round.find(wrong, round.proof(chunk, *made)), ProofFinding::Wrong);
    // Another norm, another header.
    wrong = round.attested;
    ++wrong.norm_bits;
    QCOMPARE(round.find(wrong, round.proof(0, *round.step)), ProofFinding::Wrong);
    StepResult renamed = *round.step;
    renamed.leaves[0] = crypto::merkle_leaf(outer::anchor_header(
        anchor_identity(Round::id_of(99), round.rules, 2, 8), state_counts(round.values, 0)));
    wrong = round.attested;
    wrong.anchor = crypto::merkle_root(renamed.leaves);
    QCOMPARE(round.find(wrong, round.proof(0, renamed)), ProofFinding::Wrong);
  }

  void nobody_attests_a_payload_that_cant_be_read() {
    Round round(outer::Codec::Int8, 3);
    // The second contributor signed these bytes, of which a block has a scale that its values don't have.
    Bytes payload = round.payloads[1];
    std::fill(payload.begin() + outer::codec_header_bytes, payload.begin() + outer::codec_header_bytes + 258,
              std::uint8_t{0});
    payload[outer::codec_header_bytes + 1] = 0x38;
    const auto sign = [&](const Bytes& bytes) {
      round.payloads[1] = bytes;
      round.workers[1].work.part.payload_bytes = bytes.size();
      round.workers[1].work.part.payload = payload_root(round.workers[1].id, bytes);
      std::vector<chain::RowContributor> named;
      for (const ProofContributor& one : round.workers)
        named.push_back({one.id, chain::work_root({one.work.part})});
      round.open.contributors = chain::contributors_hash(named);
    };
    sign(payload);
    QCOMPARE(round.find(round.attested, round.proof(0, *round.step)), ProofFinding::Wrong);
    payload.resize(payload.size() - 1);
    sign(payload);
    QCOMPARE(round.find(round.attested, round.proof(2, *round.step)), ProofFinding::Wrong);
  }

  // Whatever is changed in it: a proof against an honest result does not exist.
  void a_changed_proof_proves_nothing() {
    const Round round(outer::Codec::Int8, 3);
    Rng rng(1);
    for (std::uint64_t chunk = 0; chunk < round.chunks(); ++chunk) {
      const Bytes bytes = encode_row_proof(round.proof(chunk, *round.step));
      for (int i = 0; i < 300; ++i) {
        Bytes changed = bytes;
        changed[rng.below(changed.size())] ^= static_cast<std::uint8_t>(1 + rng.below(255));
        const auto read = decode_row_proof(changed);
        if (read.ok()) QVERIFY(round.find(round.attested, *read) != ProofFinding::Wrong);
      }
    }
    using Change = std::function<void(RowProof*)>;
    const Change changes[] = {
        [](RowProof* proof) { proof->chunk += 1; },
        [](RowProof* proof) { proof->chunk = 1'000'000'000'000; },
        [](RowProof* proof) { proof->contributors.pop_back(); },
        [](RowProof* proof) { std::swap(proof->contributors[0], proof->contributors[1]); },
        [](RowProof* proof) { std::swap(proof->contributors[0].slices, proof->contributors[1].slices); },
        [](RowProof* proof) { proof->contributors[0].work.part.tokens *= 2; },
        [](RowProof* proof) { std::swap(proof->weights, proof->momentum); },
        [](RowProof* proof) { std::swap(proof->new_weights, proof->new_momentum); },
        [](RowProof* proof) { proof->sums_after = {}; },
        [](RowProof* proof) { proof->last_sums.part.clear(); },
    };
    for (std::size_t i = 0; i < std::size(changes); ++i) {
      RowProof proof = round.proof(1, *round.step);
      changes[i](&proof);
      QVERIFY2(round.find(round.attested, proof) == ProofFinding::NotProven, qPrintable(QString::number(i)));
    }
    // Of another round, and of a row that nobody can check.
    Round other = Round(outer::Codec::Int8, 3);
    other.open.before = Round::id_of(5);
    QCOMPARE(other.find(other.attested, other.proof(0, *other.step)), ProofFinding::NotProven);
    other = Round(outer::Codec::Int8, 3);
    other.rules.traced = false;
    QCOMPARE(other.find(other.attested, other.proof(0, *other.step)), ProofFinding::NotProven);
  }

  void bytes_that_are_no_proof_are_refused() {
    const Round round(outer::Codec::Int8, 2);
    const Bytes bytes = encode_row_proof(round.proof(0, *round.step));
    for (std::size_t size = 0; size < bytes.size(); size += 1 + bytes.size() / 500)
      QVERIFY(!decode_row_proof(ByteSpan(bytes).first(size)).ok());
    Bytes longer = bytes;
    longer.push_back(0);
    QVERIFY(!decode_row_proof(longer).ok());
    QVERIFY(!decode_row_proof(Bytes(max_proof_bytes + 1)).ok());
  }
};

NS_TEST(TestRowProof)
#include "test_row_proof.moc"
