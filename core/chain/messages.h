// The messages of nodes about the chain, as bytes (docs/protocol/chain.md). Readers check every length before
// they believe it and take canonical bytes only; no signature is checked here.
//
//   ChainPost      kind u8 · item                      answer: verdict u8 · height of the answering node u64
//   ChainStatus    status.h
//   ChainBlocks    from height u64                     answer: more u8 · count u8 ≤ 64 · each: length u32 ·
//                                                      certified block
//   ChainRegistry  block hash · offset u64             answer: whole size u64 · the bytes from there, at most
//                                                      256 KiB
#pragma once

#include <cstdint>
#include <optional>
#include <variant>
#include <vector>

#include "core/chain/agreement.h"
#include "core/chain/history.h"

namespace neuroshard::chain {

struct CertifiedPost {  // 5: a block with its certificate, or only where it is to be had
  std::uint64_t height = 0;
  Hash256 hash{};
  std::optional<CertifiedBlock> block;  // null: an announcement
};
struct StatementPost {  // 6
  Statement statement;
};
struct EvidencePost {  // 7
  Evidence evidence;
};
struct Heartbeat {  // 8: "I am here and wait for nothing"; purpose ChainHeartbeat, so that it can be relayed
  crypto::PublicKey node{};
  BlockReference tip;
  std::uint64_t time_ms = 0;
  // The start of the node: how often its data directory was started, and a number drawn at this start.
  std::uint64_t boot = 0, incarnation = 0;
  crypto::Signature signature{};
  friend bool operator==(const Heartbeat&, const Heartbeat&) = default;
};
void sign_heartbeat(Heartbeat& heartbeat, const crypto::KeyPair& node, const Hash256& network);
bool heartbeat_holds(const Heartbeat& heartbeat, const Hash256& network);
inline constexpr std::size_t heartbeat_bytes = 32 + 8 + 32 + 8 + 8 + 8 + 64;
Bytes encode_heartbeat(const Heartbeat& heartbeat);
Expected<Heartbeat> decode_heartbeat(ByteSpan bytes);
// ---- Of an open start (open_start.h)
struct GenesisHello {   // 9: "I want to begin, and have no history"
  Statement founder;    // Register with a zero reference; anything else is refused when read
  Hash256 tokenizer{};  // that this node's anchors are for
};
struct GenesisProposal {  // 10
  BlockPtr block;
};
struct GenesisSignature {  // 11
  Hash256 block{};
  crypto::PublicKey node{};
  crypto::Signature signature{};
};
// ---- Recovery (recovery.h)
struct SuccessionProposal {  // 12
  BlockPtr block;
  Quorum signatures;  // so far
};
struct VoucherOffer {  // 13: to a candidate of the voter's local network
  HeldVoucher held;
};
// The path on which the receiver of a relayed item passes it on (relay.h). The numbers are the protocol's.
enum class RelayPath : std::uint8_t { Nowhere = 0, Row = 1, Column = 2 };
inline constexpr std::size_t max_relayed_items = 1024;
struct RelayedPost {  // 14: items for all voters of a large committee, at least one
  RelayPath path = RelayPath::Nowhere;
  std::vector<Bytes> items;  // encoded; each of a kind that may_be_relayed()
};
// Proposals, locks, statements, evidence, heartbeats, and what the rounds exchange.
bool may_be_relayed(ByteSpan item);
// 32 and higher: contribution, vector and whatever else the rounds exchange. Opaque here.
struct RoundsPost {
  std::uint8_t kind = 0;
  Bytes bytes;
};
using ChainItem = std::variant<Proposal, SignedVote, NewView, Locked, CertifiedPost, StatementPost,
                               EvidencePost, Heartbeat, GenesisHello, GenesisProposal, GenesisSignature,
                               SuccessionProposal, VoucherOffer, RelayedPost, RoundsPost>;
inline constexpr std::uint8_t first_rounds_kind = 32;

// A block with a quorum or lock is the one that these name, else the item is refused when read.
Bytes encode_item(const ChainItem& item);
// network: block hashes are computed with it.
// cache: reads the block of a proposal; null: none.
Expected<ChainItem> decode_item(ByteSpan bytes, const Hash256& network, RegistryCache* cache = nullptr);

// How a node with a history treats an item of a caller that is no member. The kind decides: nothing is decoded,
// no signature is checked.
enum class StrangerItem : std::uint8_t {
  Read,    // what a newcomer has to say
  Later,   // members' only; the caller may have become one in a block that this node has not got yet
  Refuse,  // members' only
};
StrangerItem item_of_stranger(ByteSpan item);

struct PostAnswer {
  Verdict verdict = Verdict::Taken;
  std::uint64_t height = 0;  // of the answering node's newest block
  friend bool operator==(const PostAnswer&, const PostAnswer&) = default;
};
Bytes encode_answer(const PostAnswer& answer);
Expected<PostAnswer> decode_answer(ByteSpan bytes);

inline constexpr std::size_t max_blocks_per_answer = 64;
inline constexpr std::size_t most_answer_bytes = 1u << 20;  // of an answer with more than one block
struct BlocksAnswer {
  bool more = false;
  std::vector<ByteSpan> blocks;  // certified blocks, consecutive; their bytes outlive this
};
Bytes encode_blocks_request(std::uint64_t from);
Expected<std::uint64_t> decode_blocks_request(ByteSpan bytes);
Bytes encode_blocks_answer(const BlocksAnswer& answer);
Expected<BlocksAnswer> decode_blocks_answer(ByteSpan bytes);

// A piece of the encoded registry after a block.
inline constexpr std::size_t max_registry_piece = 256u << 10;
struct RegistryRequest {
  Hash256 block{};
  std::uint64_t offset = 0;
  friend bool operator==(const RegistryRequest&, const RegistryRequest&) = default;
};
struct RegistryAnswer {
  std::uint64_t size = 0;  // of the whole
  Bytes piece;
  friend bool operator==(const RegistryAnswer&, const RegistryAnswer&) = default;
};
Bytes encode_registry_request(const RegistryRequest& request);
Expected<RegistryRequest> decode_registry_request(ByteSpan bytes);
Bytes encode_registry_answer(const RegistryAnswer& answer);
Expected<RegistryAnswer> decode_registry_answer(ByteSpan bytes);

}  // namespace neuroshard::chain
