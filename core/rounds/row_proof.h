// One chunk of a row's step, with everything that it follows from: enough to tell whether a holder's attested result is
// right there, without the row. A checker assembles it from pieces that it fetches; where the result is wrong, the same bytes
// are the proof, which every voter verifies by itself (docs/protocol/chain.md).
//
// All parts are bound to what the chain knows: the contributors to the close, the anchor before to the registry, the sums and
// the new anchor to the attestation. So nobody can prove an honest result wrong.
//
// Pure. Threads: any. Cost: the aggregation of one chunk, some 10 ms.
#pragma once

#include <cstdint>
#include <vector>

#include "core/chain/contribution.h"
#include "core/chain/open_row.h"
#include "core/rounds/step.h"

namespace neuroshard::rounds {

inline constexpr std::size_t max_proof_bytes = 8u << 20;

// A part of something that has a Merkle root, and its way to it.
template <class Part>
struct Proven {
  Part part{};
  std::vector<Hash256> path;
  friend bool operator==(const Proven&, const Proven&) = default;
};

struct ProofContributor {
  net::NodeId id{};
  Proven<chain::RowWork> work;  // to the root of its contribution's rows
  std::uint32_t place = 0, rows = 0;
  std::vector<Proven<Bytes>> slices;  // of the payload, those that the chunk stands in
  friend bool operator==(const ProofContributor&, const ProofContributor&) = default;
};

struct RowProof {
  std::uint64_t chunk = 0;
  std::vector<ProofContributor> contributors;  // in the order of their numbers in the close
  // Of the anchor before.
  Proven<Bytes> weights, momentum;
  // Leaves of the attested anchor: its header's, and those of the chunk.
  Proven<Hash256> header, new_weights, new_momentum;
  // Of the attested trace: sums before the chunk (of chunk 0 none), the leaf of those after it, and the last sums.
  Proven<Bytes> sums_before, last_sums;
  Proven<Hash256> sums_after;
  friend bool operator==(const RowProof&, const RowProof&) = default;
};
Bytes encode_row_proof(const RowProof& proof);
// Corrupt: not canonical, or larger than max_proof_bytes.
Expected<RowProof> decode_row_proof(ByteSpan bytes);

// A row, as all members know it.
struct ProofRow {
  outer::AnchorIdentity identity;  // of the round's new anchor
  std::uint64_t values = 0, bias = 0;
};
constexpr std::uint64_t trace_chunks(std::uint64_t values) {
  return (values + outer::trace_chunk - 1) / outer::trace_chunk;
}
// Values of a chunk.
struct ChunkPlace {
  std::uint64_t first = 0, count = 0;
};
ChunkPlace chunk_place(std::uint64_t values, std::uint64_t chunk);
// The slices of a payload that a chunk stands in: the first one's number, and how many.  Nothing: the codec has no parts.
struct SliceRange {
  std::uint64_t first = 0, count = 0;
};
std::optional<SliceRange> chunk_slices(const outer::CodecOptions& codec, std::uint64_t values,
                                       std::uint64_t chunk);

enum class ProofFinding : std::uint8_t {
  Right,      // of this chunk the result is right
  Wrong,      // whoever attested it is proven wrong
  NotProven,  // a part does not belong to it, or the row is one that can't be checked
};
// open: of the row and the round of `accused`, whose signature the caller has checked.
ProofFinding judge(const OuterRules& rules, const ProofRow& row, const chain::OpenRow& open,
                   const chain::RowResult& accused, const RowProof& proof);

}  // namespace neuroshard::rounds
