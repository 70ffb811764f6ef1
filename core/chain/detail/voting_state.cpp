#include "core/chain/detail/voting_state.h"

#include <utility>

#include "core/base/check.h"

namespace neuroshard::chain {
namespace {

AgreementMemory memory_of(std::uint64_t height, const Hash256& previous, AgreementMemory memory) {
  if (memory.height == height && memory.previous == previous) return memory;
  AgreementMemory fresh;
  fresh.height = height;
  fresh.previous = previous;
  return fresh;
}

}  // namespace

VotingState::VotingState(std::uint64_t height, const Hash256& previous, AgreementMemory memory)
    : memory_(memory_of(height, previous, std::move(memory))) {}

void VotingState::enter(std::uint32_t view) {
  NS_CHECK(view > memory_.view);
  if (const auto late = std::exchange(late_lock_, std::nullopt)) take(*late);
  memory_.view = view;
  memory_.prepared.reset();
  prepared_ = committed_ = false;
}

bool VotingState::has_lock_of(const Hash256& block) const {
  return (memory_.lock && memory_.lock->block == block) ||
         (late_lock_ && late_lock_->prepares->block == block);
}

bool VotingState::take(const Lock& lock) {
  if (has_lock_from(lock.prepares->view)) return false;
  memory_.lock = lock.prepares;
  memory_.block = lock.block;
  memory_.full_lock = lock.full;
  if (late_lock_ && late_lock_->prepares->view <= lock.prepares->view) late_lock_.reset();
  return true;
}

bool VotingState::take_late(const Lock& lock) {
  const Lock known = newest();
  if (known.prepares && known.prepares->view >= lock.prepares->view) return false;
  late_lock_ = lock;
  return true;
}

bool VotingState::prepare(const Hash256& block) {
  if (prepared_ || has_prepared_other(block)) return false;
  if (memory_.lock && memory_.lock->block != block) return false;
  memory_.prepared = block;
  prepared_ = true;
  return true;
}

std::optional<Hash256> VotingState::committable() const {
  if (!memory_.lock || memory_.lock->view != memory_.view || committed_) return std::nullopt;
  return memory_.lock->block;
}

}  // namespace neuroshard::chain
