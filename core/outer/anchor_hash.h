// The hash that the members of a round sign: one hash over everything that has to be equal on all of them
// after it. Inner moments and error-feedback buffers are a node's own and not in it.
//
// The root is a Merkle tree (RFC 6962) whose leaves are, in order:
//   the header: "neuroshard.anchor.v1", network [32], architecture version u64, slot u32, round u64,
//   tokenizer hash [32], counts of weights, momentum and bias u64 each, all integers little-endian; the
//   weights, the momentum v and the balancing bias, fp32 little-endian, each cut into chunks of 256 KiB, the
//   last of each possibly shorter.
// A late joiner checks each chunk that it fetches against its leaf.
#pragma once

#include <cstdint>
#include <vector>

#include "core/base/bytes.h"
#include "core/base/span.h"

namespace neuroshard::outer {

inline constexpr std::size_t anchor_chunk_bytes = 256 * 1024;

struct AnchorIdentity {
  Hash256 network{};
  std::uint64_t architecture_version = 0;
  std::uint32_t slot = 0;
  std::uint64_t round = 0;  // the round whose outer step made this anchor
  Hash256 tokenizer{};
};

struct AnchorState {
  Span<const float> weights;
  Span<const float> momentum;  // v; empty for an outer optimizer without
  Span<const float> bias;      // of the router's load balancing; empty without
};

// Leaf 0 is the header's, then one for each chunk.  Cost: one SHA-256 over everything.  Threads: any.
std::vector<Hash256> anchor_leaves(const AnchorIdentity& identity, const AnchorState& state);
// crypto::merkle_root of those leaves.
Hash256 anchor_hash(const AnchorIdentity& identity, const AnchorState& state);

// The header's bytes, for whoever has leaves from a peer and builds leaf 0 from what it knows itself.
Bytes anchor_header(const AnchorIdentity& identity, std::uint64_t weights, std::uint64_t momentum,
                    std::uint64_t bias);

}  // namespace neuroshard::outer
