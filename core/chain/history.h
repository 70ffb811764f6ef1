// A chain of certified blocks from its genesis, or from a snapshot of the registry at a trusted block, to the
// newest one that this node knows. A block counts when the committee that follows from the block before it
// has certified it; nobody's own list of members enters.
//
// Threads: one. Errors: Denied (does not follow, or is not certified; says what), AlreadyExists (not newer),
// Corrupt (bytes), NotFound.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "core/chain/committee.h"
#include "core/chain/registry.h"
#include "core/chain/store.h"

namespace neuroshard::chain {

// A block, what certifies it, and the bytes of both. Immutable parts; cheap to copy.
struct CertifiedBlock {
  BlockPtr block;
  CertificatePtr certificate;
  BlockBytes bytes;
};
CertifiedBlock make_certified(BlockPtr block, Certificate certificate);
// The header, which the first `certified_header_bytes` bytes contain. Nothing else is read or checked.
inline constexpr std::size_t certified_header_bytes = 4 + 2 + 4 + header_bytes;
Expected<BlockHeader> decode_certified_header(ByteSpan beginning);
class RegistryCache;
// cache: reads the block; null: nobody else does.
Expected<CertifiedBlock> decode_certified(ByteSpan bytes, const Hash256& network,
                                          RegistryCache* cache = nullptr);

inline constexpr std::size_t durations_kept = 3;
// How long rounds took, by the times in blocks: what a node knows of them that was not there.
struct RoundTimes {
  // Unix time of the opening block of the round in progress; none: not known.
  std::optional<std::uint64_t> opened_ms;
  // Of the last three rounds that closed by quorum, oldest first; from the opening block to the close block.
  std::deque<Duration> durations;
  friend bool operator==(const RoundTimes&, const RoundTimes&) = default;
};

// The block that the next one builds on, with the state after it. Cheap to copy.
struct ChainTip {
  BlockPtr block;
  RegistryPtr registry;    // after the block
  CommitteePtr committee;  // of the next block
  Hash256 opening{};       // opening block of the round in progress
  RoundTimes times;
  std::uint64_t height() const { return block->header.height; }
};

// Blocks after which registries and committees are already known, and the way blocks are read: a simulation has
// one for all nodes and holds equal blocks once.
class RegistryCache {
 public:
  virtual ~RegistryCache() = default;
  virtual std::optional<ChainTip> find(const Hash256& block) = 0;
  virtual void put(const ChainTip& tip) = 0;
  virtual Expected<BlockPtr> read(ByteSpan bytes, const Hash256& network) {
    return decode_block(bytes, network);
  }
  virtual Expected<CertifiedBlock> read_certified(ByteSpan bytes, const Hash256& network) {
    return decode_certified(bytes, network);
  }
  virtual Bytes write(const Block& block) { return encode_block(block); }
};

// The facts that a node believes about a network's history before it has any of it. None: an open start.
struct TrustAnchor {
  std::optional<Hash256> genesis;
  std::optional<BlockReference> recent;             // a block that the chain must contain
  std::optional<crypto::PublicKey> founder_wallet;  // the genesis must name it
  // A node that trusts a certain history never begins another one.
  bool may_begin() const { return !genesis && !recent; }
  bool is_open() const { return !genesis && !recent && !founder_wallet; }
};

class History {
 public:
  struct Services {  // all outlive the history
    const ChainRules& rules;
    SignatureChecks& checks;
    RegistryCache* cache = nullptr;
  };
  // before: null for the first block that is known.
  static ChainTip tip_of(const ChainRules& rules, const ChainTip* before, BlockPtr block,
                         RegistryPtr registry);
  // A genesis with the signatures of all its founders. Denied.
  static Expected<History> begin(Services services, const CertifiedBlock& genesis);
  // From a snapshot: the registry must have the header's root; the block's hash and the genesis are what the
  // caller trusts. Denied, Corrupt.
  static Expected<History> begin_at(Services services, const Hash256& genesis, const CertifiedBlock& block,
                                    ByteSpan registry);
  // A history of before this start. Blocks and hashes follow each other; the caller has checked that.
  struct Verified {
    Hash256 genesis{};
    std::vector<Hash256> hashes;         // of all its blocks, the oldest first
    std::vector<CertifiedBlock> blocks;  // that it had in memory, the oldest first; not empty
    RoundTimes times;                    // at the newest
  };
  // registry: after the newest block, as in begin_at(). Denied also: that block is a succession, which could
  // not be replaced without the state before it.
  static Expected<History> resume(Services services, Verified before, ByteSpan registry);

  const Hash256& genesis() const { return genesis_; }
  const ChainTip& tip() const { return tip_; }
  // Nothing before its first block is known.
  std::uint64_t first_height() const { return first_height_; }
  // Blocks in memory: the newest `blocks_kept`, and all of the last three rounds up to `most_blocks_kept`.
  const CertifiedBlock* find(std::uint64_t height) const;
  // Of any height since the beginning.
  std::optional<Hash256> hash_at(std::uint64_t height) const;
  bool contains(const BlockReference& reference) const;

  // The next block. Of a block of this node's own disk structure and roots are checked, signatures are not.
  enum class Origin { Peer, OwnDisk };
  Expected<void> append(const CertifiedBlock& block, Origin origin = Origin::Peer);
  // This chain again from its genesis on. Up to the block before the present tip it takes no other blocks.
  Expected<History> from_the_beginning(const CertifiedBlock& genesis) const;
  // It had this block before it began again.
  bool is_known(const Block& block) const {
    return block.header.height < known_.size() && known_[block.header.height] == block.hash;
  }
  // Whether append() would take it; nothing changes.
  Expected<void> check_next(const CertifiedBlock& block) const;
  // Blocks that it had before it began again are missing.
  bool is_partial() const { return tip_.height() < known_.size(); }
  // Puts another block of the same height in the place of the newest one, which is a succession that the other
  // beats (recovery.h). Whether this node's person has to agree first is for the caller. Denied: nothing
  // changed.
  Expected<void> replace_succession(const CertifiedBlock& other);

  // Consecutive encoded blocks from a height on, `most_bytes` and as many as fit an answer at most, but one in
  // any case; from memory, or older ones by `load` (null: only those in memory).
  using LoadBlock = std::function<Expected<Bytes>(std::uint64_t height)>;
  std::vector<BlockBytes> blocks_from(std::uint64_t height, std::size_t most_bytes,
                                      const LoadBlock& load) const;

 private:
  explicit History(Services services) : services_(services) {}
  // The tip that `block` makes of `before`.
  Expected<ChainTip> next(const ChainTip& before, const CertifiedBlock& block, Origin origin) const;
  Expected<ChainTip> apply(const ChainTip& before, const CertifiedBlock& block, Origin origin) const;
  void adopt(ChainTip tip, const CertifiedBlock& block);
  void keep(const CertifiedBlock& block);
  void forget_old_blocks();

  Services services_;
  Hash256 genesis_{};
  ChainTip tip_, before_;  // before_: to take back a succession; no block after a beginning
  std::deque<CertifiedBlock> kept_;
  std::vector<Hash256> hashes_;  // from first_height_ on
  std::vector<Hash256> known_;   // by height: of blocks that it had before it began again
  std::uint64_t first_height_ = 0;
  std::deque<std::uint64_t> opening_heights_;  // of the last rounds, `rounds_kept` at most
};
inline constexpr std::size_t rounds_kept = 3;
inline constexpr std::size_t blocks_kept = 256;
inline constexpr std::size_t most_blocks_kept = 4096;

// A peer's chain, fetched and verified beside one's own: nothing of the own history changes until it is known
// that it holds. Blocks are appended as they arrive.
class ForeignChain {
 public:
  ForeignChain(History::Services services, TrustAnchor trust);
  std::uint64_t next_height() const;  // to be asked for
  // Denied: not a chain of this network, or not the trusted one; nothing more is worth asking for.
  Expected<void> take(const std::vector<CertifiedBlock>& blocks);
  const History* history() const;  // null: no genesis yet
  // Its genesis is trusted, and nothing later has to be in it: a node without a history can follow it from here.
  bool is_certain() const { return history_ && trust_.genesis && !trust_.recent; }
  // A chain whose first blocks are no longer in memory begins again at its genesis: a node keeps all blocks on
  // its disk, so it fetches them once more, one after the other.
  // Denied: the trusted recent block is not in it.
  Expected<History> finish() &&;

 private:
  History::Services services_;
  TrustAnchor trust_;
  std::optional<CertifiedBlock> genesis_;
  std::optional<History> history_;
};

// The history that goes on where two open starts meet and this node's own has fewer than 8 rounds: the
// one with more wallets whose nodes answered over connections that proved their keys; equal: the lower
// genesis hash.
inline constexpr std::uint64_t most_rounds_to_merge = 8;
struct MeetingSide {
  Hash256 genesis{};
  std::uint64_t rounds = 0;
  std::size_t answering_wallets = 0;
};
bool prefers_other(const MeetingSide& own, const MeetingSide& other);

}  // namespace neuroshard::chain
