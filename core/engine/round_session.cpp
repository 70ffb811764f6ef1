// The training session as outer rounds see it: its slots, one after the other, as one vector.
#include "core/base/check.h"
#include "core/compute/module.h"
#include "core/engine/detail/training_session_impl.h"

namespace neuroshard::engine::detail {

Expected<void> SessionImpl::read_weights(Span<float> target) {
  std::size_t at = 0;
  for (std::uint32_t i = 0; i < stage_->slot_count(); ++i) {
    const std::size_t count = static_cast<std::size_t>(stage_->slot(i).count);
    NS_CHECK(at + count <= target.size());
    const compute::Status status = stage_->copy_out(i, compute::SlotBuffer::Parameters, target.data() + at);
    if (!status.ok()) return compute::to_error(status);
    at += count;
  }
  NS_CHECK(at == target.size());
  return {};
}

Expected<void> SessionImpl::write_weights(Span<const float> source) {
  checkpoints_->before_update();  // a save that was started has its copy first
  std::size_t at = 0;
  for (std::uint32_t i = 0; i < stage_->slot_count(); ++i) {
    const std::size_t count = static_cast<std::size_t>(stage_->slot(i).count);
    NS_CHECK(at + count <= source.size());
    const compute::Status status = stage_->copy_in(i, compute::SlotBuffer::Parameters, source.data() + at);
    if (!status.ok()) return compute::to_error(status);
    at += count;
  }
  NS_CHECK(at == source.size());
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
