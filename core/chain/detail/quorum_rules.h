// The rules by which votes of one height are a lock or a certificate (agreement.h): how many units, in a stall
// for which blocks, and whether a lock that a peer shows holds. Threads: one.
#pragma once

#include <cstdint>
#include <optional>

#include "core/chain/agreement_memory.h"
#include "core/chain/checks.h"
#include "core/chain/committee.h"
#include "core/chain/verdict.h"

namespace neuroshard::chain {

// A block with its prepares of one view. full: of an earlier view and more than two thirds, where the prepares
// are a stall quorum and the block changes more than presence; else null.
struct Lock {
  QuorumPtr prepares, full;
  BlockPtr block;
};

class QuorumRules {
 public:
  struct Place {
    Hash256 network{};
    std::uint64_t height = 0;
    Hash256 previous{};
  };
  // checks outlives it.
  QuorumRules(const Place& place, CommitteePtr committee, SignatureChecks& checks)
      : place_(place), committee_(std::move(committee)), checks_(checks) {}

  // From now on the stall quorum suffices for the blocks that it is for. True: it did not before.
  bool stall();
  bool is_stalled() const { return rule_ == Rule::Stalled; }
  // Taken: it is of this height and history.
  Verdict place_of(std::uint64_t height, const Hash256& previous) const;
  bool is_full(std::uint64_t units) const { return committee_->is_quorum(units); }
  // For some block.
  bool suffices(std::uint64_t units) const;

  // From votes that were checked one by one. held: this member's lock, which may be none.
  std::optional<Lock> lock_of(const Quorum& prepares, const BlockPtr& block, const Lock& held) const;
  std::optional<Certificate> certificate_of(const Quorum& commits, const Block& block,
                                            const Lock& held) const;

  // A lock that a peer shows for a block. Taken without `usable`: not newer than `held`. Later: good in a
  // stall only. Signatures are checked only when it would be used.
  Verdict check(const Quorum& prepares, const std::optional<Quorum>& full, const BlockPtr& block,
                const Lock& held, std::optional<Lock>* usable) const;

 private:
  enum class Rule : std::uint8_t { Normal, Stalled };
  // The units of its signers; 0 when one is not in the committee or not in its place.
  std::uint64_t units_of(const Quorum& quorum) const;
  bool signatures_hold(const Quorum& quorum) const;
  // Of the lock held, if it is of that block; null: none.
  QuorumPtr full_lock(const Lock& held, const Hash256& block) const;

  const Place place_;
  const CommitteePtr committee_;
  SignatureChecks& checks_;
  Rule rule_ = Rule::Normal;
};

}  // namespace neuroshard::chain
