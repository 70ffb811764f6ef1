#include "core/runtime/disk_room.h"

#include <utility>

namespace neuroshard::runtime {
namespace {

constexpr Duration measure_pause = std::chrono::seconds(5);

}  // namespace

DiskRoom::DiskRoom(std::shared_ptr<storage::DiskBudget> budget, const rounds::RoundShape& shape,
                   std::uint64_t spool_memory, std::function<std::uint64_t()> spare_memory)
    : budget_(std::move(budget)),
      shape_(shape),
      spool_memory_(spool_memory),
      spare_memory_(std::move(spare_memory)) {}

Expected<void> DiskRoom::take(std::size_t contributors) {
  rounds::RoundShape shape = shape_;
  shape.contributors = contributors;
  const rounds::RoundCost cost = rounds::round_cost(shape);
  budget_->reserve(0);
  const auto room = budget_->check(rounds::written_bytes(cost, spool_memory_));
  if (!room.ok() && (cost.temporary > spare_memory_() || !budget_->check(cost.kept).ok())) return room;
  budget_->reserve(cost.kept);
  return {};
}

void DiskRoom::measure(rounds::RoundWork& work, MonotonicTime now) {
  if (measures_ || now < next_measure_) return;
  measures_ = true;
  next_measure_ = now + measure_pause;
  work.run([budget = budget_] { budget->measure(); },
           [this, life = lifetime_.token()] {
             if (life.alive()) measures_ = false;
           });
}

}  // namespace neuroshard::runtime
