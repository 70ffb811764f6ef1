#include "core/engine/session/session_round_model.h"

#include <algorithm>

#include "core/base/check.h"
#include "core/compute/module.h"

namespace neuroshard::engine::detail {

template <class Part>
Expected<void> SessionRoundModel::each_slot(std::uint64_t first, std::uint64_t count, const Part& part) {
  std::uint64_t begin = 0;
  for (std::uint32_t i = 0; i < parts_.stage->slot_count(); ++i) {
    const std::uint64_t end = begin + parts_.stage->slot(i).count;
    const std::uint64_t from = std::max(begin, first), to = std::min(end, first + count);
    if (from < to) {
      const compute::Status status =
          part(i, static_cast<std::size_t>(from - begin), static_cast<std::size_t>(from - first),
               static_cast<std::size_t>(to - from));
      if (!status.ok()) return compute::to_error(status);
    }
    begin = end;
  }
  NS_CHECK(first + count <= begin);
  return {};
}

Expected<void> SessionRoundModel::read_weights(std::uint64_t first, Span<float> target) {
  return each_slot(
      first, target.size(), [&](std::uint32_t slot, std::size_t at, std::size_t to, std::size_t count) {
        if (count == parts_.stage->slot(slot).count)
          return parts_.stage->copy_out(slot, compute::SlotBuffer::Parameters, target.data() + to);
        if (const float* own = parts_.stage->slot(slot).parameters) {
          std::copy_n(own + at, count, target.begin() + to);
          return compute::Status{};
        }
        std::vector<float> whole(static_cast<std::size_t>(parts_.stage->slot(slot).count));
        const compute::Status status =
            parts_.stage->copy_out(slot, compute::SlotBuffer::Parameters, whole.data());
        if (status.ok()) std::copy_n(whole.begin() + at, count, target.begin() + to);
        return status;
      });
}

Expected<void> SessionRoundModel::write_weights(std::uint64_t first, Span<const float> source) {
  parts_.checkpoints->before_update();  // a save in progress gets its copy first
  return each_slot(
      first, source.size(), [&](std::uint32_t slot, std::size_t at, std::size_t from, std::size_t count) {
        if (count == parts_.stage->slot(slot).count)
          return parts_.stage->copy_in(slot, compute::SlotBuffer::Parameters, source.data() + from);
        if (float* own = parts_.stage->slot(slot).parameters) {
          std::copy_n(source.begin() + from, count, own + at);
          return compute::Status{};
        }
        std::vector<float> whole(static_cast<std::size_t>(parts_.stage->slot(slot).count));
        const compute::Status status =
            parts_.stage->copy_out(slot, compute::SlotBuffer::Parameters, whole.data());
        if (!status.ok()) return status;
        std::copy_n(source.begin() + from, count, whole.begin() + at);
        return parts_.stage->copy_in(slot, compute::SlotBuffer::Parameters, whole.data());
      });
}

// A limit that was lowered since the plan takes from it. Of a part, texts have as much.
std::uint64_t SessionRoundModel::spare_memory() const {
  const TrainingMemory& memory = parts_.memory;
  const std::uint64_t limit = parts_.directory.settings().number(config::Setting::MemoryLimit);
  const std::uint64_t less = limit == 0 ? 0 : memory.plan.limit - std::min(limit, memory.plan.limit);
  const std::uint64_t spare = memory.spare_bytes - std::min(less, memory.spare_bytes);
  return parts_.is_part() ? spare / 2 : spare;
}

// The text behind a part's steps is that of many drivers.
Bytes SessionRoundModel::last_batches(std::uint64_t steps) {
  if (parts_.is_part()) return {};
  const auto work = parts_.loader->last_batches(steps);
  return work ? data::encode_batch_work(*work) : Bytes();
}

double SessionRoundModel::learning_rate(std::uint64_t step) const {
  return train::learning_rate(parts_.schedule, schedule_step_.value_or(step)) * rate_factor_;
}

}  // namespace neuroshard::engine::detail
