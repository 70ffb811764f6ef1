#include "core/rounds/row_proof.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <optional>

#include "core/base/byte_reader.h"
#include "core/crypto/merkle.h"
#include "core/rounds/held_items.h"

namespace neuroshard::rounds {
namespace {

constexpr std::size_t most_path = 40;   // of a tree of 2^40 leaves
constexpr std::size_t most_slices = 6;  // a chunk has 256 KiB at most, and may begin within a slice

// ---- bytes

void append_path(Bytes& bytes, const std::vector<Hash256>& path) {
  bytes.push_back(static_cast<std::uint8_t>(path.size()));
  for (const Hash256& beside : path) append_array(bytes, beside);
}
void append(Bytes& bytes, const Proven<Bytes>& proven) {
  append_part(bytes, proven.part);
  append_path(bytes, proven.path);
}
void append(Bytes& bytes, const Proven<Hash256>& proven) {
  append_array(bytes, proven.part);
  append_path(bytes, proven.path);
}
auto work_fields(auto& work) {
  return std::tie(work.row, work.tokens, work.payload_bytes, work.payload);
}

std::vector<Hash256> read_path(ByteReader& in) {
  const auto size = in.number<std::uint8_t>();
  if (size > most_path) in.fail();
  std::vector<Hash256> path(in.good() ? size : 0);
  for (Hash256& beside : path) beside = in.array<Hash256>();
  return path;
}
void read(ByteReader& in, Proven<Bytes>& proven) {
  const ByteSpan part = in.part();
  proven.part.assign(part.begin(), part.end());
  proven.path = read_path(in);
}
void read(ByteReader& in, Proven<Hash256>& proven) {
  proven.part = in.array<Hash256>();
  proven.path = read_path(in);
}

void append(Bytes& bytes, const ProofContributor& one) {
  append_array(bytes, one.id);
  append_record(bytes, work_fields(one.work.part));
  append_path(bytes, one.work.path);
  append_record(bytes, std::tie(one.place, one.rows));
  bytes.push_back(static_cast<std::uint8_t>(one.slices.size()));
  for (const Proven<Bytes>& slice : one.slices) append(bytes, slice);
}
ProofContributor read_contributor(ByteReader& in) {
  ProofContributor one;
  one.id = in.array<net::NodeId>();
  in.read(work_fields(one.work.part));
  one.work.path = read_path(in);
  in.read(std::tie(one.place, one.rows));
  const auto slices = in.number<std::uint8_t>();
  if (slices > most_slices) in.fail();
  for (std::size_t i = 0; i < slices && in.good(); ++i) read(in, one.slices.emplace_back());
  return one;
}

auto byte_parts(auto& proof) {
  return std::array{&proof.weights, &proof.momentum, &proof.sums_before, &proof.last_sums};
}
auto leaf_parts(auto& proof) {
  return std::array{&proof.header, &proof.new_weights, &proof.new_momentum, &proof.sums_after};
}

// ---- judging

bool leads_to(const Hash256& root, const Hash256& leaf, std::uint64_t index, std::uint64_t count,
              const std::vector<Hash256>& path) {
  return crypto::merkle_root_of_path(leaf, index, count, path) == root;
}
bool leads_to(const Hash256& root, const Proven<Hash256>& leaf, std::uint64_t index, std::uint64_t count) {
  return leads_to(root, leaf.part, index, count, leaf.path);
}
bool leads_to(const Hash256& root, const Proven<Bytes>& part, std::uint64_t index, std::uint64_t count) {
  return leads_to(root, crypto::merkle_leaf(part.part), index, count, part.path);
}

template <class Value>
std::vector<Value> values_in(ByteSpan bytes) {
  std::vector<Value> values(bytes.size() / sizeof(Value));
  if (!values.empty()) std::memcpy(values.data(), bytes.data(), values.size() * sizeof(Value));
  return values;
}
template <class Value>
Hash256 leaf_of(const std::vector<Value>& values) {
  return crypto::merkle_leaf(as_bytes(Span<const Value>(values.data(), values.size())));
}

// One proof against one result.
class Judgement {
 public:
  Judgement(const OuterRules& rules, const ProofRow& row, const chain::OpenRow& open,
            const chain::RowResult& accused, const RowProof& proof)
      : rules_(rules),
        row_(row),
        open_(open),
        accused_(accused),
        proof_(proof),
        chunks_(trace_chunks(row.values)),
        place_(chunk_place(row.values, proof.chunk)),
        options_(rules.aggregation) {
    if (open.most_norm_bits != 0) options_.most_norm = std::bit_cast<double>(open.most_norm_bits);
  }

  ProofFinding find() {
    if (!is_of_the_row() || !names_the_contributors()) return ProofFinding::NotProven;
    if (!has_whole_payloads()) return ProofFinding::Wrong;
    if (!belongs_to_the_chain() || !belongs_to_the_result()) return ProofFinding::NotProven;
    if (proof_.header.part != crypto::merkle_leaf(outer::anchor_header(row_.identity, counts())))
      return ProofFinding::Wrong;
    // No honest holder has a payload that it can't read, or attests a result that is made of one.
    if (!decode()) return ProofFinding::Wrong;
    if (const auto wrong = examine_sums()) return *wrong;
    return examine_values();
  }

 private:
  outer::AnchorCounts counts() const { return state_counts(row_.values, row_.bias); }
  std::uint64_t leaves() const {
    const std::uint64_t bias_chunks =
        (row_.bias * sizeof(float) + outer::anchor_chunk_bytes - 1) / outer::anchor_chunk_bytes;
    return 1 + 2 * chunks_ + bias_chunks;
  }
  std::uint64_t weights_leaf() const { return 1 + proof_.chunk; }
  std::uint64_t momentum_leaf() const { return 1 + chunks_ + proof_.chunk; }

  bool is_of_the_row() const {
    return proof_.chunk < chunks_ && is_traced(rules_, proof_.contributors.size()) &&
           accused_.row == open_.row && !accused_.carried && open_.contributors != Hash256{};
  }

  bool names_the_contributors() const {
    std::vector<chain::RowContributor> named;
    for (const ProofContributor& one : proof_.contributors) {
      Bytes leaf;
      append_record(leaf, work_fields(one.work.part));
      const auto root =
          crypto::merkle_root_of_path(crypto::merkle_leaf(leaf), one.place, one.rows, one.work.path);
      if (!root || one.work.part.row != open_.row) return false;
      named.push_back({one.id, *root});
    }
    return chain::contributors_hash(named) == open_.contributors;
  }
  // A payload of another length can't be decoded, and no honest holder says that it has it.
  bool has_whole_payloads() const {
    return std::all_of(
        proof_.contributors.begin(), proof_.contributors.end(), [&](const ProofContributor& one) {
          return one.work.part.payload_bytes == outer::max_payload_bytes(rules_.codec, row_.values);
        });
  }
  // The payloads' slices and the anchor before.
  bool belongs_to_the_chain() const {
    const std::size_t bytes = static_cast<std::size_t>(place_.count) * sizeof(float);
    return std::all_of(proof_.contributors.begin(), proof_.contributors.end(),
                       [&](const ProofContributor& one) { return has_slices(one); }) &&
           proof_.weights.part.size() == bytes && proof_.momentum.part.size() == bytes &&
           leads_to(open_.before, proof_.weights, weights_leaf(), leaves()) &&
           leads_to(open_.before, proof_.momentum, momentum_leaf(), leaves());
  }
  bool has_slices(const ProofContributor& one) const {
    const auto range = chunk_slices(rules_.codec, row_.values, proof_.chunk);
    const std::uint64_t all = (one.work.part.payload_bytes + payload_slice_bytes - 1) / payload_slice_bytes;
    if (!range || one.slices.size() != range->count) return false;
    for (std::size_t i = 0; i < one.slices.size(); ++i) {
      Bytes leaf(one.id.begin(), one.id.end());
      leaf.insert(leaf.end(), one.slices[i].part.begin(), one.slices[i].part.end());
      if (!leads_to(one.work.part.payload, crypto::merkle_leaf(leaf), range->first + i, all,
                    one.slices[i].path))
        return false;
    }
    return true;
  }

  bool belongs_to_the_result() const {
    const bool first = proof_.chunk == 0;
    return leads_to(accused_.anchor, proof_.header, 0, leaves()) &&
           leads_to(accused_.anchor, proof_.new_weights, weights_leaf(), leaves()) &&
           leads_to(accused_.anchor, proof_.new_momentum, momentum_leaf(), leaves()) &&
           leads_to(accused_.trace, proof_.sums_after, proof_.chunk, chunks_) &&
           leads_to(accused_.trace, proof_.last_sums, chunks_ - 1, chunks_) &&
           (first || leads_to(accused_.trace, proof_.sums_before, proof_.chunk - 1, chunks_));
  }

  // False: a contributor's values can't be decoded.
  bool decode() {
    const auto part = outer::payload_part(rules_.codec, place_.first, place_.count);
    const std::uint64_t begin = part->begin % payload_slice_bytes;
    for (const ProofContributor& one : proof_.contributors) {
      Bytes bytes;
      for (const Proven<Bytes>& slice : one.slices)
        bytes.insert(bytes.end(), slice.part.begin(), slice.part.end());
      std::vector<float>& values = deltas_.emplace_back(static_cast<std::size_t>(place_.count));
      if (bytes.size() < begin + part->size) return false;
      const ByteSpan body =
          ByteSpan(bytes).subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(part->size));
      if (!outer::decode_part(rules_.codec, body, values).ok()) return false;
    }
    for (std::size_t i = 0; i < deltas_.size(); ++i)
      contributions_.push_back(
          {proof_.contributors[i].id, proof_.contributors[i].work.part.tokens, deltas_[i]});
    return true;
  }

  std::optional<ProofFinding> examine_sums() const {
    const std::vector<double> before =
        values_in<double>(proof_.chunk == 0 ? Bytes() : proof_.sums_before.part);
    if (before.empty() != (proof_.chunk == 0)) return ProofFinding::Wrong;
    const auto after = outer::measure_chunk(options_, contributions_, before);
    // Other numbers of sums than the rule takes, which the accused has attested.
    if (!after.ok()) return ProofFinding::Wrong;
    if (leaf_of(*after) != proof_.sums_after.part) return ProofFinding::Wrong;
    return std::nullopt;
  }

  ProofFinding examine_values() const {
    std::vector<float> aggregate(static_cast<std::size_t>(place_.count));
    const std::vector<double> last = values_in<double>(proof_.last_sums.part);
    const auto report =
        last.empty() ? Expected<outer::AggregateReport>(make_error(ErrorCode::Corrupt, "no sums"))
                     : outer::aggregate_chunk(options_, contributions_, open_.most_tokens, last, aggregate);
    if (!report.ok() || report->counted != contributions_.size()) return ProofFinding::Wrong;
    if (std::bit_cast<std::uint64_t>(report->median_norm) != accused_.norm_bits) return ProofFinding::Wrong;
    std::vector<float> weights = values_in<float>(proof_.weights.part),
                       momentum = values_in<float>(proof_.momentum.part);
    const outer::OuterOptimizer optimizer{outer_learning_rate(rules_, report->counted), rules_.mu};
    if (!outer::outer_step(optimizer, aggregate, momentum, weights).ok()) return ProofFinding::NotProven;
    const bool right =
        leaf_of(weights) == proof_.new_weights.part && leaf_of(momentum) == proof_.new_momentum.part;
    return right ? ProofFinding::Right : ProofFinding::Wrong;
  }

  const OuterRules& rules_;
  const ProofRow& row_;
  const chain::OpenRow& open_;
  const chain::RowResult& accused_;
  const RowProof& proof_;
  const std::uint64_t chunks_;
  const ChunkPlace place_;
  outer::AggregationOptions options_;
  std::vector<std::vector<float>> deltas_;
  std::vector<outer::Contribution> contributions_;
};

}  // namespace

Bytes encode_row_proof(const RowProof& proof) {
  Bytes bytes;
  append_le(bytes, proof.chunk);
  bytes.push_back(static_cast<std::uint8_t>(proof.contributors.size()));
  for (const ProofContributor& one : proof.contributors) append(bytes, one);
  for (const auto* part : byte_parts(proof)) append(bytes, *part);
  for (const auto* leaf : leaf_parts(proof)) append(bytes, *leaf);
  return bytes;
}

Expected<RowProof> decode_row_proof(ByteSpan bytes) {
  const auto refused = [] { return make_error(ErrorCode::Corrupt, "this is no proof about a row"); };
  if (bytes.size() > max_proof_bytes) return refused();
  ByteReader in(bytes);
  RowProof proof;
  proof.chunk = in.number<std::uint64_t>();
  const auto contributors = in.number<std::uint8_t>();
  for (std::size_t i = 0; i < contributors && in.good(); ++i)
    proof.contributors.push_back(read_contributor(in));
  for (auto* part : byte_parts(proof)) read(in, *part);
  for (auto* leaf : leaf_parts(proof)) read(in, *leaf);
  if (!in.at_end()) return refused();
  return proof;
}

ChunkPlace chunk_place(std::uint64_t values, std::uint64_t chunk) {
  const std::uint64_t first = chunk * outer::trace_chunk;
  return {first, first < values ? std::min<std::uint64_t>(values - first, outer::trace_chunk) : 0};
}

std::optional<SliceRange> chunk_slices(const outer::CodecOptions& codec, std::uint64_t values,
                                       std::uint64_t chunk) {
  const ChunkPlace place = chunk_place(values, chunk);
  const auto part = outer::payload_part(codec, place.first, place.count);
  if (!part) return std::nullopt;
  const std::uint64_t first = part->begin / payload_slice_bytes;
  return SliceRange{first, (part->begin + part->size - 1) / payload_slice_bytes - first + 1};
}

ProofFinding judge(const OuterRules& rules, const ProofRow& row, const chain::OpenRow& open,
                   const chain::RowResult& accused, const RowProof& proof) {
  return Judgement(rules, row, open, accused, proof).find();
}

}  // namespace neuroshard::rounds
