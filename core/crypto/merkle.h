// Merkle tree hash over chunks (RFC 6962, section 2.1): SHA-256, with different prefixes for leaves and inner
// nodes, so that an inner node can never be passed off as a chunk.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/base/bytes.h"

namespace neuroshard::crypto {

// SHA-256(0x00 ‖ chunk).
Hash256 merkle_leaf(ByteSpan chunk);
// Root over leaf hashes in order; an odd last node moves up unchanged. No leaves: SHA-256 of nothing.
// Cost: O(n) hashes and one copy of the leaves.
Hash256 merkle_root(Span<const Hash256> leaves);
// Root over `bytes` cut into chunks of chunk_bytes ≥ 1, the last one possibly shorter.
Hash256 merkle_root(ByteSpan bytes, std::size_t chunk_bytes);

// All levels of a tree, for many paths.
class MerkleTree {
 public:
  // One leaf at least.
  explicit MerkleTree(std::vector<Hash256> leaves);
  const std::vector<Hash256>& leaves() const { return levels_.front(); }
  const Hash256& root() const { return levels_.back().front(); }
  // The nodes beside the way from a leaf to the root, from below (RFC 6962, section 2.1.1). index < leaves().size().
  std::vector<Hash256> path(std::size_t index) const;

 private:
  std::vector<std::vector<Hash256>> levels_;  // from the leaves to the root
};
// The root of a tree of `count` leaves with this leaf and path. Nothing: no such tree has a path of this length.
std::optional<Hash256> merkle_root_of_path(const Hash256& leaf, std::uint64_t index, std::uint64_t count,
                                           Span<const Hash256> path);

}  // namespace neuroshard::crypto
