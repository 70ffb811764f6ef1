// The training session as outer rounds see it: its slots, one after the other, as one vector.
#include <algorithm>

#include "core/base/check.h"
#include "core/compute/module.h"
#include "core/engine/detail/training_session_impl.h"

namespace neuroshard::engine::detail {

// Calls part(slot, place in the slot, place in the range, count) for each slot that has a share of the range;
// in their order.
template <class Part>
Expected<void> SessionImpl::each_slot(std::uint64_t first, std::uint64_t count, const Part& part) {
  std::uint64_t begin = 0;
  for (std::uint32_t i = 0; i < stage_->slot_count(); ++i) {
    const std::uint64_t end = begin + stage_->slot(i).count;
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

Expected<void> SessionImpl::read_weights(std::uint64_t first, Span<float> target) {
  return each_slot(
      first, target.size(), [&](std::uint32_t slot, std::size_t at, std::size_t to, std::size_t count) {
        if (count == stage_->slot(slot).count)
          return stage_->copy_out(slot, compute::SlotBuffer::Parameters, target.data() + to);
        if (const float* own = stage_->slot(slot).parameters) {
          std::copy_n(own + at, count, target.begin() + to);
          return compute::Status{};
        }
        std::vector<float> whole(static_cast<std::size_t>(stage_->slot(slot).count));
        const compute::Status status = stage_->copy_out(slot, compute::SlotBuffer::Parameters, whole.data());
        if (status.ok()) std::copy_n(whole.begin() + at, count, target.begin() + to);
        return status;
      });
}

Expected<void> SessionImpl::write_weights(std::uint64_t first, Span<const float> source) {
  checkpoints_->before_update();  // a save that was started has its copy first
  NS_RETURN_IF_ERROR(each_slot(
      first, source.size(), [&](std::uint32_t slot, std::size_t at, std::size_t from, std::size_t count) {
        if (count == stage_->slot(slot).count)
          return stage_->copy_in(slot, compute::SlotBuffer::Parameters, source.data() + from);
        if (float* own = stage_->slot(slot).parameters) {
          std::copy_n(source.begin() + from, count, own + at);
          return compute::Status{};
        }
        std::vector<float> whole(static_cast<std::size_t>(stage_->slot(slot).count));
        const compute::Status status = stage_->copy_out(slot, compute::SlotBuffer::Parameters, whole.data());
        if (!status.ok()) return status;
        std::copy_n(source.begin() + from, count, whole.begin() + at);
        return stage_->copy_in(slot, compute::SlotBuffer::Parameters, whole.data());
      }));
  stage_->parameters_changed();
  return {};
}

void SessionImpl::synced() {
  if (!checkpoints_->due_after_sync(state_)) return;
  const MonotonicTime begin = services_.clock.monotonic_now();
  history_->flush();
  saved_after_sync_ = checkpoints_->save(run_state());
  sync_stall_seconds_ += to_seconds(services_.clock.monotonic_now() - begin);
}

}  // namespace neuroshard::engine::detail
