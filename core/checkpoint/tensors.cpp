#include "core/checkpoint/tensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

namespace neuroshard::checkpoint {
namespace {

// Of one part: small, so that whoever must wait for another thread's waits for microseconds.
constexpr std::size_t part_floats = std::size_t{64} << 10;

std::uint64_t floats_in(const TensorView& view) {
  std::uint64_t total = 0;
  for (const SlotTensors& slot : view.slots)
    total += slot.parameters.size() + slot.moment1.size() + slot.moment2.size();
  for (const ExtraTensor& extra : view.extras) total += extra.values.size();
  return total;
}

}  // namespace

std::uint64_t Snapshot::bytes_for(const compute::ModelShape& shape, Span<const compute::SlotId> slots) {
  std::uint64_t floats = 0;
  for (const compute::SlotId slot : slots) floats += 3 * compute::slot_parameter_count(shape, slot);
  return floats * sizeof(float);
}

Expected<void> Snapshot::reserve(std::uint64_t bytes) {
  if (bytes <= buffer_.size()) return {};
  platform::LargeBuffer larger = platform::LargeBuffer::allocate(static_cast<std::size_t>(bytes));
  if (larger.empty()) {
    return make_error(
        ErrorCode::Exhausted,
        fmt::format(
            "not enough memory for a checkpoint's copy of {} MiB; checkpoints are written slot by slot",
            bytes >> 20));
  }
  view_ = {};
  buffer_ = std::move(larger);
  return {};
}

Span<const float> Snapshot::plan_copy(Span<const float> from, float*& to) {
  const Span<const float> copied(to, from.size());
  for (std::size_t at = 0; at < from.size(); at += part_floats) {
    parts_.push_back({from.data() + at, to + at, std::min(part_floats, from.size() - at)});
  }
  to += from.size();
  return copied;
}

Expected<void> Snapshot::begin(const TensorView& live) {
  abandon();
  NS_RETURN_IF_ERROR(reserve(floats_in(live) * sizeof(float)));
  view_ = live;
  auto* at = reinterpret_cast<float*>(buffer_.data());
  // Few floats, in a buffer that their owner fills anew for the next save.
  for (ExtraTensor& extra : view_.extras) {
    if (!extra.values.empty()) std::memcpy(at, extra.values.data(), extra.values.size_bytes());
    extra.values = {at, extra.values.size()};
    at += extra.values.size();
  }
  for (SlotTensors& slot : view_.slots) {
    slot.parameters = plan_copy(slot.parameters, at);
    slot.moment1 = plan_copy(slot.moment1, at);
    slot.moment2 = plan_copy(slot.moment2, at);
  }
  return {};
}

bool Snapshot::copy_part() {
  const std::size_t index = next_part_.fetch_add(1, std::memory_order_relaxed);
  if (index >= parts_.size()) {
    next_part_.store(parts_.size(), std::memory_order_relaxed);  // keeps the count from running away
    return false;
  }
  const Part& part = parts_[index];
  std::memcpy(part.to, part.from, part.floats * sizeof(float));
  bool last;
  {
    const std::lock_guard lock(mutex_);
    last = ++parts_done_ == parts_.size();
  }
  if (last) copied_.notify_all();
  return true;
}

void Snapshot::wait_copied() {
  std::unique_lock lock(mutex_);
  copied_.wait(lock, [this] { return parts_done_ == parts_.size(); });
}

void Snapshot::abandon() {
  parts_.clear();
  next_part_ = 0;
  parts_done_ = 0;
}

void Snapshot::release() {
  abandon();
  view_ = {};
  buffer_ = {};
}

}  // namespace neuroshard::checkpoint
