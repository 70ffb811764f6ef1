// Room for rounds by the user's limits on the disk. With too little for a round's temporary files, a round still
// has room if they fit into the spare memory; anchors and own contributions are always on the disk, because a restart
// of all members needs them.
//
// Threads: the executor's of the rounds.
#pragma once

#include <functional>
#include <memory>

#include "core/base/clock.h"
#include "core/base/lifetime.h"
#include "core/rounds/learner.h"
#include "core/rounds/round_cost.h"
#include "core/rounds/round_room.h"
#include "core/storage/disk_budget.h"

namespace neuroshard::runtime {

class DiskRoom final : public rounds::RoundRoom {
 public:
  // shape: of the largest row; contributors are those of each call. spare_memory: bytes.
  DiskRoom(std::shared_ptr<storage::DiskBudget> budget, const rounds::RoundShape& shape,
           std::uint64_t spool_memory, std::function<std::uint64_t()> spare_memory);
  Expected<void> take(std::size_t contributors) override;
  Expected<void> check() const override { return budget_->check_free(0); }
  // Measures the disk from time to time, on the thread of `work`. While that is busy, the figures are older.
  void measure(rounds::RoundWork& work, MonotonicTime now);

 private:
  const std::shared_ptr<storage::DiskBudget> budget_;
  const rounds::RoundShape shape_;
  const std::uint64_t spool_memory_;
  const std::function<std::uint64_t()> spare_memory_;
  bool measures_ = false;
  MonotonicTime next_measure_{};
  Lifetime lifetime_;
};

}  // namespace neuroshard::runtime
