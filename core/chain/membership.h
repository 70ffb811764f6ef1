// The statements of this node about itself: it registers, comes back, goes away, renews its beacon chain and
// uses its voucher. Looks at each new tip and makes the statement that is missing; remembers what a restart
// must not forget.
//
// Pure: no clock, no network. Threads: one.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "core/chain/beacon.h"
#include "core/chain/history.h"

namespace neuroshard::chain {

// Kept in ChainStore::Record::Local.
struct LocalMemory {
  Hash256 beacon_seed{};
  std::uint64_t boots = 0;     // starts of this data directory
  std::uint32_t vouchers = 0;  // given by this node's wallet
  friend bool operator==(const LocalMemory&, const LocalMemory&) = default;
};
Bytes encode_local(const LocalMemory& memory);
Expected<LocalMemory> decode_local(ByteSpan bytes);

// Wishes of the node about its record in the registry.
struct MemberWishes {
  // Other rows than those that it holds: it gives these up, and does not register before it has the others. Nothing: it stays with
  // its own, or, if it follows the plan, with those that the registry has; then it does not register either.
  std::optional<RowSet> rows;
  std::optional<std::uint32_t> memory_tiers = {};  // that it offers: whole 500 MB; nothing: not known yet
  std::uint32_t speed = 0;                         // of its training: millions of FLOP/s; 0: not known yet
};

class OwnMembership {
 public:
  // key outlives it. delegation: names the wallet; without one the node is its own wallet (a key of its own).
  OwnMembership(const ChainRules& rules, const crypto::KeyPair& key, crypto::Delegation delegation,
                const Hash256& beacon_seed, std::optional<HeldVoucher> voucher,
                std::uint32_t beacon_length = beacon_chain_length, RowSet rows = {},
                bool follows_plan = false);

  // Wants to be a member and to vote; false: away.
  void want_active(bool active) { active_ = active; }
  // A voucher that came later. It takes the place of one that this member can't use at this tip, if it can use this one.
  void take_voucher(const HeldVoucher& voucher, const ChainTip& tip);
  void want(MemberWishes wishes) { wishes_ = std::move(wishes); }
  // A node that does not hold the state yet does not register and does not come back.
  void ready(bool holds_state) { ready_ = holds_state; }

  // The statement that is missing at this tip; the same one until it is in a block or too old.
  std::optional<Statement> missing(const ChainTip& tip);
  // The statement for a genesis: a zero reference.
  Statement founding() const;
  // This round's beacon reveal under the commitment that holds, for a contribution. NotFound: not a member, or
  // no commitment of this seed.
  Expected<Hash256> reveal(const ChainTip& tip, std::uint64_t round);

 private:
  using What = decltype(Statement::what);
  Statement unsigned_at(const BlockReference& reference, What what) const;
  Statement sign(const BlockReference& reference, What what) const;
  bool applies(const ChainTip& tip, const Statement& statement) const;
  bool can_use(const ChainTip& tip, const Voucher& voucher) const;  // as a member
  crypto::Signature voucher_use() const;
  Register registration(std::uint64_t first_round) const;
  // The statement that is missing while this node is no member, and that of a member.
  std::optional<What> joining(const ChainTip& tip, const WalletRecord* wallet) const;
  std::optional<What> change(const ChainTip& tip, const MemberRecord& member, const WalletRecord& wallet);
  BeaconChain chain_from(std::uint64_t round) const;
  // A commitment that this node did not make from its seed, or that ends soon.
  bool needs_commitment(const MemberRecord& member, std::uint64_t round);
  const BeaconChain* chain_of(const BeaconCommitment& commitment);

  const ChainRules& rules_;
  const crypto::KeyPair& key_;
  const net::NodeId id_;
  const crypto::Delegation delegation_;
  const Hash256 seed_;
  std::optional<HeldVoucher> voucher_;
  const std::uint32_t beacon_length_;
  const RowSet rows_;  // that this node holds
  const bool follows_plan_;
  MemberWishes wishes_;
  bool active_ = true, ready_ = false;
  std::optional<Statement> last_;
  std::vector<BeaconChain> chains_;  // of the commitments that were looked at: two at most
};

}  // namespace neuroshard::chain
