// Blocks: the certified history of a network (docs/protocol/chain.md). A header names the body by its root
// and the registry after the block by its root. The view in which a block is agreed on is not hashed.
//
// A body has ten sections, each of which may be empty: genesis, succession, close, result, silent, statements,
// evidence, and those that are reserved (plan, receipts, transfers), which are empty in this version. Its root
// is a Merkle root over the opening block and the sections, so one section can be shown without the others.
//
// Canonical bytes; decode checks sizes before it allocates, and no signature. Threads: any. Errors: Corrupt,
// Unsupported (a version, or a reserved section that is not empty).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "core/chain/contribution.h"
#include "core/chain/evidence.h"
#include "core/chain/row_result.h"
#include "core/chain/rules.h"
#include "core/chain/statements.h"

namespace neuroshard::chain {

struct BlockHeader {
  std::uint64_t height = 0;  // 0: genesis
  Hash256 previous{};        // hash of the header before; genesis: zeros
  std::uint64_t time_ms = 0;
  Hash256 body{};      // body_root()
  Hash256 registry{};  // Registry::root() after this block
  friend bool operator==(const BlockHeader&, const BlockHeader&) = default;
};
inline constexpr std::size_t header_bytes = 4 + 2 + 8 + 32 + 8 + 32 + 32;
Bytes encode_header(const BlockHeader& header);
Expected<BlockHeader> decode_header(ByteSpan bytes);
Hash256 block_hash(const BlockHeader& header, const Hash256& network);

// Ends a round's collection. The contributors of a row follow from the vectors (rights.h), so they are not
// written down.
struct CloseSection {
  std::uint64_t round = 0;
  std::vector<ContributionEntry> contributions;  // ascending by member
  std::vector<Vector> vectors;                   // ascending by voter; opening and round as the section's
  friend bool operator==(const CloseSection&, const CloseSection&) = default;
};

// The outcome of the round that the newest close ended; the block that has it opens the next round.
struct ResultSection {
  std::uint64_t round = 0;
  std::vector<RowResult> rows;  // the round's rows, ascending
  friend bool operator==(const ResultSection&, const ResultSection&) = default;
};

// The first block only.
struct GenesisSection {
  std::vector<Statement> founders;  // Register statements whose reference is zero; ascending by node key
  std::vector<Hash256> anchors;     // of each row: the initial weights
  Hash256 tokenizer{};              // SHA-256 of the network's tokenizer.json
  friend bool operator==(const GenesisSection&, const GenesisSection&) = default;
};

// A person's decision that the chain goes on without voters that are gone (recovery.h): the named voters are
// active after the block, all others dormant. Nothing else is in such a block.
struct SuccessionSection {
  std::vector<std::uint32_t> continuing;  // member numbers, ascending; all of them sign
  friend bool operator==(const SuccessionSection&, const SuccessionSection&) = default;
};

struct BlockBody {
  std::optional<GenesisSection> genesis;
  std::optional<SuccessionSection> succession;
  std::optional<CloseSection> close;  // never together with `result`
  std::optional<ResultSection> result;
  std::vector<std::uint32_t> silent;  // numbers of active voters that become dormant; ascending
  std::vector<Statement> statements;  // in the order in which they apply; no node twice
  std::vector<Evidence> evidence;     // ascending by node key, one per node
  friend bool operator==(const BlockBody&, const BlockBody&) = default;

  // Presence changes and nothing else: `silent`, Away and Back. Such a block may be certified by the stall
  // quorum. False for an empty body.
  bool is_presence_only() const;
  bool empty() const;
};
// The vectors of a close section are written together: the numbers that any of them lists once, and one bitmap
// over these per vector.
Bytes encode_body(const BlockBody& body);
// opening: hash of the opening block of the round in progress, which close sections bind to.
Expected<BlockBody> decode_body(ByteSpan bytes, const Hash256& opening);
Hash256 body_root(const BlockBody& body, const Hash256& opening);

// A block as it is agreed on, kept and sent. Immutable and shared: bodies are large.
struct Block {
  BlockHeader header;
  BlockBody body;
  Hash256 hash{};     // block_hash(header)
  Hash256 opening{};  // of the round in progress when it was made; zeros for the genesis
};
using BlockPtr = std::shared_ptr<const Block>;
inline constexpr std::size_t max_block_bytes = header_bytes + 32 + max_body_bytes;
// header: with the body's root, which is not checked here.
BlockPtr make_block(BlockHeader header, BlockBody body, const Hash256& opening, const Hash256& network);
// header · opening · body. Corrupt also when the body does not have the header's root.
Bytes encode_block(const Block& block);
Expected<BlockPtr> decode_block(ByteSpan bytes, const Hash256& network);

}  // namespace neuroshard::chain
