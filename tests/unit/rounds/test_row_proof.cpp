// Proofs about one chunk of a row's step: right for an honest result, wrong for every false one, and never against a result
// that they do not belong to.
#include <QtTest>

#include <cstring>

#include "core/base/rng.h"
#include "core/crypto/hash.h"
#include "core/crypto/merkle.h"
#include "core/rounds/held_items.h"
#include "core/rounds/row_proof.h"
#include "tests/support/test_main.h"

using namespace neuroshard;
using namespace neuroshard::rounds;

namespace {

constexpr std::uint64_t values = 2 * outer::trace_chunk + 4096 + 300;

net::NodeId id_of(std::size_t number) {
  Bytes bytes;
  append_le(bytes, static_cast<std::uint64_t>(number));
  return crypto::sha256(bytes);
}

std::vector<float> drawn(std::uint64_t seed, float size) {
  Rng rng(seed);
  std::vector<float> drawn(values);
  for (float& value : drawn) value = size * static_cast<float>(rng.uniform() - 0.5);
  return drawn;
}

std::uint64_t bits_of(double value) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}

Bytes chunk_of(const OuterState& state, std::uint64_t begin, const ChunkPlace& place) {
  Bytes bytes(static_cast<std::size_t>(place.count) * sizeof(float));
  const auto read = state.bytes->read_at(begin + place.first * sizeof(float), bytes);
  if (!read.ok()) qFatal("the state can't be read");
  return bytes;
}

// A round of a row as its holders have it.
struct Round {
  explicit Round(outer::Codec codec, std::size_t contributors) {
    rules.codec.codec = codec;
    rules.traced = true;
    limits = {1'000'000, 0.8};
    before = state_in_memory(drawn(1, 1.0f), drawn(2, 0.1f));
    before_step = *hashed_state(anchor_identity(id_of(99), rules, 2, 6), before);
    row = {anchor_identity(id_of(99), rules, 2, 7), values, 0};
    open.row = 2;
    open.round = 7;
    open.before = before_step->hash;
    open.before_round = 6;
    open.most_tokens = limits.most_tokens;
    open.most_norm_bits = bits_of(*limits.most_norm);
    std::vector<chain::RowContributor> named;
    for (std::size_t i = 0; i < contributors; ++i) {
      const Bytes payload = *outer::encode(rules.codec, drawn(10 + i, 0.02f * static_cast<float>(i + 1)));
      add(i, payload);
      named.push_back({workers.back().id, chain::work_root({works.back()})});
    }
    open.contributors = chain::contributors_hash(named);
    step = *make_step(rules, row.identity, *before, inputs, limits, spool);
    attested.row = 2;
    attested.anchor = step->hash;
    attested.trace = step->trace->root;
    attested.norm_bits = bits_of(step->report->median_norm);
  }

  void add(std::size_t i, const Bytes& payload) {
    ProofContributor one;
    one.id = id_of(i);
    one.work.part = {2, 1000 + 100 * i, payload.size(), payload_root(one.id, payload)};
    one.rows = 1;
    works.push_back(one.work.part);
    payloads.push_back(payload);
    inputs.push_back({one.id, one.work.part.tokens, in_memory(payload)});
    workers.push_back(std::move(one));
  }

  // As a checker assembles it, of what the holders of this result give.
  RowProof proof(std::uint64_t chunk, const StepResult& of) const {
    const std::uint64_t chunks = trace_chunks(values);
    const ChunkPlace place = chunk_place(values, chunk);
    const crypto::MerkleTree old(before_step->leaves), made(of.leaves), trace(of.trace->leaves);
    RowProof proof;
    proof.chunk = chunk;
    const auto leaf = [](const crypto::MerkleTree& tree, std::uint64_t at) {
      return Proven<Hash256>{tree.leaves()[at], tree.path(at)};
    };
    proof.weights = {chunk_of(*before, 0, place), old.path(1 + chunk)};
    proof.momentum = {chunk_of(*before, values * sizeof(float), place), old.path(1 + chunks + chunk)};
    proof.header = leaf(made, 0);
    proof.new_weights = leaf(made, 1 + chunk);
    proof.new_momentum = leaf(made, 1 + chunks + chunk);
    proof.sums_after = leaf(trace, chunk);
    const auto sums = [&](std::uint64_t at) {
      Bytes bytes(of.trace->sums * sizeof(double));
      if (!of.trace->bytes->read_at(at * bytes.size(), bytes).ok()) qFatal("no sums");
      return Proven<Bytes>{bytes, trace.path(at)};
    };
    if (chunk > 0) proof.sums_before = sums(chunk - 1);
    proof.last_sums = sums(chunks - 1);
    const SliceRange range = *chunk_slices(rules.codec, values, chunk);
    for (std::size_t i = 0; i < workers.size(); ++i) {
      ProofContributor one = workers[i];
      const crypto::MerkleTree tree(*payload_leaves(one.id, BytesView(payloads[i])));
      for (std::uint64_t slice = range.first;
           slice < range.first + range.count && slice < tree.leaves().size(); ++slice) {
        const ByteSpan rest = ByteSpan(payloads[i]).subspan(slice * payload_slice_bytes);
        const ByteSpan bytes = rest.first(std::min(rest.size(), payload_slice_bytes));
        one.slices.push_back({Bytes(bytes.begin(), bytes.end()), tree.path(slice)});
      }
      proof.contributors.push_back(std::move(one));
    }
    return proof;
  }
  ProofFinding find(const chain::RowResult& result, const RowProof& proof) const {
    return judge(rules, row, open, result, proof);
  }

  OuterRules rules;
  RowLimits limits;
  MemorySpool spool;
  Anchor before;
  StepPtr before_step, step;
  ProofRow row;
  chain::OpenRow open;
  std::vector<chain::RowWork> works;
  std::vector<Bytes> payloads;
  std::vector<StepInput> inputs;
  std::vector<ProofContributor> workers;
  chain::RowResult attested;
};

}  // namespace

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
    for (std::uint64_t chunk = 0; chunk < trace_chunks(values); ++chunk) {
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
    other.inputs[1].payload = in_memory(*outer::encode(other.rules.codec, drawn(77, 0.03f)));
    const StepPtr made =
        *make_step(other.rules, other.row.identity, *other.before, other.inputs, other.limits, other.spool);
    chain::RowResult wrong = round.attested;
    wrong.anchor = made->hash;
    wrong.trace = made->trace->root;
    for (std::uint64_t chunk = 0; chunk < trace_chunks(values); ++chunk)
      QCOMPARE(round.find(wrong, round.proof(chunk, *made)), ProofFinding::Wrong);
    // Another norm, another header.
    wrong = round.attested;
    ++wrong.norm_bits;
    QCOMPARE(round.find(wrong, round.proof(0, *round.step)), ProofFinding::Wrong);
    StepResult renamed = *round.step;
    renamed.leaves[0] = crypto::merkle_leaf(
        outer::anchor_header(anchor_identity(id_of(99), round.rules, 2, 8), state_counts(values, 0)));
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
    for (std::uint64_t chunk = 0; chunk < trace_chunks(values); ++chunk) {
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
    other.open.before = id_of(5);
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
