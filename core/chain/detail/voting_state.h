// The votes that a member may give in one height (agreement.h): in each view it prepares one block at most, and none
// but that of its lock while it has one; it commits to a lock of the present view only.
//
// Has what is on the disk before a vote leaves (AgreementMemory). Beside it, a newer lock of an earlier view, which
// counts from the next view on. Pure: the caller has checked what it gives. Threads: one.
#pragma once

#include <cstdint>
#include <optional>

#include "core/chain/agreement_memory.h"
#include "core/chain/detail/quorum_rules.h"

namespace neuroshard::chain {

class VotingState {
 public:
  // memory: of this height and previous block, else ignored.
  VotingState(std::uint64_t height, const Hash256& previous, AgreementMemory memory);

  const AgreementMemory& memory() const { return memory_; }
  std::uint32_t view() const { return memory_.view; }
  // To a later view. A lock that waited for it counts.
  void enter(std::uint32_t view);

  // ---- Locks. Without `prepares` there is none.
  // That a vote follows.
  Lock lock() const { return {memory_.lock, memory_.full_lock, memory_.block}; }
  // Of all that are known, that which waits for the next view among them.
  Lock newest() const { return late_lock_ ? *late_lock_ : lock(); }
  bool has_late_lock() const { return late_lock_.has_value(); }
  // The lock, or the one that waits, is of this block.
  bool has_lock_of(const Hash256& block) const;
  // The lock is of this view or a later one.
  bool has_lock_from(std::uint32_t view) const { return memory_.lock && memory_.lock->view >= view; }
  // True: it is newer than the lock, and takes its place. Of a later view: the caller enters that view.
  bool take(const Lock& lock);
  // Of an earlier view. True: it is newer than all that are known, and waits for the next view.
  bool take_late(const Lock& lock);

  // ---- Votes. In this view and in this life of the process: a restart gives the same vote once more.
  bool has_prepared() const { return prepared_; }
  // True: it may prepare this block, and has now. The memory goes to the disk before the vote leaves.
  bool prepare(const Hash256& block);
  // Another block was prepared in this view, maybe before a restart.
  bool has_prepared_other(const Hash256& block) const {
    return memory_.prepared && *memory_.prepared != block;
  }
  // The block that it may commit to; none: there is none, or it has.
  std::optional<Hash256> committable() const;
  void commit() { committed_ = true; }

 private:
  AgreementMemory memory_;
  std::optional<Lock> late_lock_;
  bool prepared_ = false, committed_ = false;
};

}  // namespace neuroshard::chain
