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

#include "core/base/byte_source.h"
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

// Numbers of values; 0: the anchor has none of this kind.
struct AnchorCounts {
  std::uint64_t weights = 0;
  std::uint64_t momentum = 0;  // v of the outer optimizer
  std::uint64_t bias = 0;      // of the router's load balancing
};

// state: weights, momentum and bias, fp32 little-endian, without anything between. Leaf 0 is the header's, then
// one for each chunk.  InvalidArgument: a state of another size. Other errors: those of the source.  Cost: one
// SHA-256 over everything.  Threads: any.
Expected<std::vector<Hash256>> anchor_leaves(const AnchorIdentity& identity, const AnchorCounts& counts,
                                             const ByteSource& state);
// crypto::merkle_root of those leaves.
Expected<Hash256> anchor_hash(const AnchorIdentity& identity, const AnchorCounts& counts,
                              const ByteSource& state);

// The header's bytes, for whoever has leaves from a peer and builds leaf 0 from what it knows itself.
Bytes anchor_header(const AnchorIdentity& identity, const AnchorCounts& counts);

}  // namespace neuroshard::outer
