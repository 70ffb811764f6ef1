// A voter's record of one height, kept over a restart: the view that it works in, the block that it prepared
// there, and its lock (agreement.h). The record is on the disk before a vote leaves.
//
// Canonical bytes with a magic and a version; decode checks sizes before it allocates, and no signature: they
// come from this node's own disk. Threads: any. Errors: Corrupt, Unsupported (a later version).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "core/chain/block.h"
#include "core/chain/vote.h"

namespace neuroshard::chain {

using QuorumPtr = std::shared_ptr<const Quorum>;

struct AgreementMemory {
  std::uint64_t height = 0;
  Hash256 previous{};
  std::uint32_t view = 0;
  std::optional<Hash256> prepared;  // in this view
  QuorumPtr lock;                   // null: none; never of a later view
  BlockPtr block;                   // of the lock
  // The newest lock of more than two thirds under the same block, of an earlier view, where `lock` has only
  // the stall quorum and the block changes more than presence. Else null.
  QuorumPtr full_lock;
};
// Whether the record knows of this vote, which this voter signed, or of a later view.
bool remembers(const AgreementMemory& memory, const Vote& vote);
Bytes encode_agreement_memory(const AgreementMemory& memory);
// block: the encoded block of the lock; empty: there is none.
Bytes encode_agreement_memory_with(const AgreementMemory& memory, ByteSpan block);
Expected<AgreementMemory> decode_agreement_memory(ByteSpan bytes, const Hash256& network);

}  // namespace neuroshard::chain
