// Merkle tree hash over chunks (RFC 6962, section 2.1): SHA-256, with different prefixes for leaves and inner
// nodes, so that an inner node can never be passed off as a chunk.
#pragma once

#include <cstdint>

#include "core/base/bytes.h"

namespace neuroshard::crypto {

// SHA-256(0x00 ‖ chunk).
Hash256 merkle_leaf(ByteSpan chunk);
// Root over leaf hashes in order; an odd last node moves up unchanged. No leaves: SHA-256 of nothing.
// Cost: O(n) hashes and one copy of the leaves.
Hash256 merkle_root(Span<const Hash256> leaves);
// Root over `bytes` cut into chunks of chunk_bytes ≥ 1, the last one possibly shorter.
Hash256 merkle_root(ByteSpan bytes, std::size_t chunk_bytes);

}  // namespace neuroshard::crypto
