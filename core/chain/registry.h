// The registry: members, wallets, presence, rows and the beacon, as a pure function of the blocks
// (docs/protocol/chain.md). Its Merkle root is in every header, so a record can be proven to anybody who
// knows a block's hash.
//
// A registry is immutable once made and shared. apply_block() gives the next one or says why the block is
// not valid here. It checks all that follows from the blocks alone; what a voter must judge by what it knows
// itself (clock, silence, omissions, arithmetic) is not checked here.
//
// The root is a Merkle tree (RFC 6962, section 2.1) with one leaf per record, in this order: the position (where
// the chain stands), the ancestors' hashes, the committee of the epoch, the closed round, then all rows, all
// wallets and all members ascending by number, all revocations ascending by node and wallet, all open rows ascending by
// row and round, all strikes ascending by wallet, round and result, and the size of the model, where it is not as at first. A leaf is a kind (u8, in that order from 1) and the record's bytes
// as encode() writes them.
//
// A node key that a wallet revoked stays in the registry for ever, so that it never registers for this wallet again.
//
// Members that were dormant for 30 days end their membership with the next block; so does the vote of a wallet
// without nodes.
//
// Cost: a copy of the records per block; some 400 bytes a member. Threads: any.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <tuple>
#include <vector>

#include "core/chain/block.h"
#include "core/chain/checks.h"
#include "core/chain/detail/key_index.h"
#include "core/chain/model_size.h"
#include "core/chain/open_row.h"
#include "core/chain/rules.h"
#include "core/net/node_id.h"

namespace neuroshard::chain {

enum class Presence : std::uint8_t { Active = 1, Dormant = 2 };

struct WalletRecord {
  std::uint32_t number = 0;  // in the order of registration, never used twice
  crypto::PublicKey key{};
  bool founder = false;
  bool vouched = false;
  bool voter = false;  // has a vote, and at least one node
  bool expelled = false;
  std::uint64_t admitted_height = 0;
  std::uint64_t counted_tokens = 0;      // certified, since its first node came: the order of admission
  std::uint32_t qualifying = 0;          // certified contributions that count for admission
  std::uint64_t last_qualifying = 0;     // round: one a round, whatever the number of nodes
  std::uint64_t last_voucher_round = 0;  // in which a voucher of this wallet was used; 0: never
  std::uint32_t highest_serial = 0;      // of its vouchers that were used
  std::uint64_t used_serials = 0;        // bit i: highest_serial - i was used
  // Its vote counts without the limit for wallets that nobody vouched for; it can vouch for others.
  bool is_trusted() const { return founder || vouched; }
  friend bool operator==(const WalletRecord&, const WalletRecord&) = default;
};

struct MemberRecord {
  std::uint32_t number = 0;
  std::uint32_t wallet = 0;  // number
  crypto::PublicKey key{};
  net::NodeId id{};  // crypto::node_id(key); not encoded
  Presence presence = Presence::Active;
  std::uint64_t presence_height = 0;  // of the block that set it
  std::uint64_t dormant_ms = 0;       // that block's time, when dormant
  std::uint64_t registered_height = 0;
  std::uint32_t contributions = 0;  // certified: in a close, with a payload that most active units have
  std::uint64_t last_round = 0;     // of them
  BeaconCommitment beacon;
  std::optional<BeaconCommitment> next_beacon;
  // The newest value revealed, so that the next one is checked over the gap only.
  Hash256 revealed{};
  std::uint64_t revealed_round = 0;  // 0: none of this commitment
  RowSet rows;                       // that it holds; of a member that moved and is dormant: that it fetches
  bool follows_plan = false;         // else its owner chose the rows
  std::uint64_t moved_height = 0;    // of the block in which it last gave up its rows for these; 0: never
  std::uint32_t memory_tiers = 0;    // that it offers: whole 500 MB
  std::uint32_t speed = 0;           // that it says: millions of FLOP/s; 0: not said
  std::uint64_t offered_height = 0;  // of the block in which it last said so; 0: never
  // A node of a voter has a share of the wallet's units after its first contribution, a founder's at once.
  bool can_share() const { return contributions > 0 || registered_height == 0; }
  // It said that it fetches its rows, and not yet that it has them.
  bool is_moving() const {
    return moved_height != 0 && presence == Presence::Dormant && presence_height == moved_height;
  }
  friend bool operator==(const MemberRecord&, const MemberRecord&) = default;
};

struct RevocationRecord {
  crypto::PublicKey node{};
  crypto::PublicKey wallet{};  // by key: the wallet's own record may be forgotten
  std::uint64_t height = 0;    // of the block that carried it
  auto place() const { return std::tie(node, wallet); }
  friend bool operator==(const RevocationRecord&, const RevocationRecord&) = default;
};

struct RowRecord {
  Hash256 anchor{};
  std::uint64_t changed_round = 0;           // of the last new anchor; 0: genesis
  std::array<std::uint64_t, 8> norm_bits{};  // the last certified norms, newest first; 0: none yet
  friend bool operator==(const RowRecord&, const RowRecord&) = default;
};

// A round that is closed and has no result yet.
struct ClosedRound {
  std::uint64_t height = 0;
  std::vector<ContributionEntry> contributions;
  std::vector<std::vector<std::uint32_t>> contributors;  // per row of the round: member numbers, ascending
  friend bool operator==(const ClosedRound&, const ClosedRound&) = default;
};

class Registry;
using RegistryPtr = std::shared_ptr<const Registry>;

class Registry {
 public:
  // ---- Where the chain stands
  std::uint64_t height() const { return height_; }
  std::uint64_t time_ms() const { return time_ms_; }
  std::uint64_t round() const { return round_; }  // the newest with a result
  std::uint64_t opening_height() const { return opening_height_; }
  // The opening block of the round in progress. tip: hash of this registry's block.
  // opening_hash_: zeros in the opening block's own registry.
  const Hash256& opening(const Hash256& tip) const {
    return opening_height_ == height_ ? tip : opening_hash_;
  }
  const std::optional<ClosedRound>& closed() const { return closed_; }
  const Hash256& beacon() const { return beacon_; }
  const Hash256& tokenizer() const { return tokenizer_; }  // the genesis names it
  const Hash256& root() const { return root_; }

  // ---- Records, ascending by number
  const std::vector<MemberRecord>& members() const { return members_; }
  const std::vector<WalletRecord>& wallets() const { return wallets_; }
  const std::vector<RowRecord>& rows() const { return rows_; }
  const std::vector<RevocationRecord>& revocations() const { return revocations_; }
  // Where members hold some rows only; else there are none.
  const std::vector<OpenRow>& open_rows() const { return open_rows_; }
  const std::vector<StrikeRecord>& strikes() const { return strikes_; }
  const SizeRecord& size() const { return size_; }  // of the model
  // Null: it is settled, or the round is not closed.
  const OpenRow* open_row(std::uint32_t row, std::uint64_t round) const;
  // Null: this wallet has not revoked this node key.
  const RevocationRecord* revocation(const crypto::PublicKey& node, const crypto::PublicKey& wallet) const;
  // Positions of the active members.
  const std::vector<std::uint32_t>& active() const { return active_; }
  const std::vector<std::uint32_t>& epoch_committee() const { return epoch_committee_; }  // empty: all voters
  const MemberRecord* find(std::uint32_t number) const;
  const MemberRecord* find(const net::NodeId& id) const;
  const WalletRecord* wallet(std::uint32_t number) const;
  const WalletRecord* wallet(const crypto::PublicKey& key) const;
  // Whether this node's wallet votes, whatever its presence.
  bool is_voter(const MemberRecord& member) const;
  // All members that there are or were have lower numbers.
  std::uint32_t next_member() const { return next_member_; }
  std::size_t voter_count() const;  // wallets
  // Less than half of the units that were seen within seven days (active, or dormant for a shorter time) are
  // active: presence and rounds only. Units of trusted wallets only, so that others can't bring it about.
  bool is_restricted() const;
  // Whether a block of this height and hash is an ancestor, among the last `statement_life`. tip as above.
  bool is_recent(const BlockReference& reference, const Hash256& tip) const;
  // Whether evidence that names this previous or opening block is of this history: one of the last
  // `evidence_blocks` blocks or the last `evidence_rounds` opening blocks. tip as above.
  bool is_ancestor(const Hash256& block, const Hash256& tip) const;

  // Canonical bytes of all records, for a newcomer; the root proves them. Corrupt.
  Bytes encode() const;
  static Expected<RegistryPtr> decode(ByteSpan bytes);

 private:
  void rebuild_indexes();
  static auto position_fields(auto& registry);
  Bytes position_record() const;
  Bytes ancestors_record() const;
  Bytes epoch_record() const;
  Hash256 compute_root() const;
  void complete();                // what follows from the records
  friend class BlockApplication;  // detail/block_application.h
  friend class OpenRowChanges;    // detail/open_row_changes.h
  friend class SizeChanges;       // detail/size_changes.h
  std::uint64_t height_ = 0, time_ms_ = 0, round_ = 0, opening_height_ = 0;
  Hash256 opening_hash_{}, beacon_{}, tokenizer_{}, root_{};
  std::vector<Hash256> recent_;    // hashes of the blocks before this one, newest first
  std::vector<Hash256> openings_;  // of the opening blocks before the current one, newest first
  std::optional<ClosedRound> closed_;
  std::vector<RowRecord> rows_;
  std::vector<WalletRecord> wallets_;
  std::vector<MemberRecord> members_;
  std::vector<RevocationRecord> revocations_;
  std::vector<OpenRow> open_rows_;
  std::vector<StrikeRecord> strikes_;
  SizeRecord size_;
  std::uint64_t epoch_round_ = 0, epoch_ms_ = 0;
  std::vector<std::uint32_t> epoch_committee_;
  std::uint32_t next_member_ = 0, next_wallet_ = 0;
  std::vector<std::uint32_t> active_;  // not encoded
  // Not encoded; shared between registries until one changes it.
  std::shared_ptr<const KeyIndex> by_id_, by_wallet_key_;
};

// The registry of a genesis block. Denied names what does not hold: a signature, a founder twice, the number
// of anchors, the registry's root.
Expected<RegistryPtr> genesis_registry(const ChainRules& rules, const Block& genesis,
                                       SignatureChecks& checks);

// before: the registry of the block that `block` names as its previous one. Checks structure, signatures,
// rights and quotas, and that the header has the roots of the body and of the registry that results. All that
// costs no signature is checked first; what is checked by signature is bounded by the sections' limits.
// Sections apply in this order: close or result (judged by `before`), evidence, silent, statements.
// Denied says what does not hold; the block is then invalid for everybody.
Expected<RegistryPtr> apply_block(const ChainRules& rules, const Registry& before, const Hash256& before_hash,
                                  const Block& block, SignatureChecks& checks);
// For the maker of a block: the same without a header, and the header's roots that result.
struct Proposed {
  BlockHeader header;
  RegistryPtr registry;
};
Expected<Proposed> apply_body(const ChainRules& rules, const Registry& before, const Hash256& before_hash,
                              std::uint64_t time_ms, const BlockBody& body, SignatureChecks& checks);
Expected<Proposed> apply_genesis(const ChainRules& rules, std::uint64_t time_ms, const BlockBody& body,
                                 SignatureChecks& checks);

// Whether a statement or an evidence could be in the next block, as far as can be said without its signatures:
// for mempools. Denied says what does not hold.
Expected<void> admissible(const ChainRules& rules, const Registry& before, const Hash256& before_hash,
                          const Statement& statement);
// If that block has this time.
Expected<void> admissible_at(const ChainRules& rules, const Registry& before, const Hash256& before_hash,
                             std::uint64_t time_ms, const Statement& statement);
Expected<void> admissible(const ChainRules& rules, const Registry& before, const Hash256& before_hash,
                          const Evidence& evidence);
// For the maker of a block: the body without those statements and evidence that do not apply one after the
// other, and not more of them than a block may have. No signature is checked; close, result, silent stay.
BlockBody applicable(const ChainRules& rules, const Registry& before, const Hash256& before_hash,
                     std::uint64_t time_ms, const BlockBody& body);

}  // namespace neuroshard::chain
