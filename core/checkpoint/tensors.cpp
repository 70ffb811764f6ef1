#include "core/checkpoint/tensors.h"

#include <fmt/format.h>

#include <cstring>
#include <new>

namespace neuroshard::checkpoint {
namespace {

std::uint64_t floats_in(const TensorView& view) {
  std::uint64_t total = 0;
  for (const SlotTensors& slot : view.slots)
    total += slot.parameters.size() + slot.moment1.size() + slot.moment2.size();
  for (const ExtraTensor& extra : view.extras) total += extra.values.size();
  return total;
}

Span<const float> copy(Span<const float> from, float*& to) {
  const Span<const float> copied(to, from.size());
  if (!from.empty()) std::memcpy(to, from.data(), from.size_bytes());
  to += from.size();
  return copied;
}

}  // namespace

std::uint64_t Snapshot::bytes_for(const compute::ModelShape& shape, Span<const compute::SlotId> slots) {
  std::uint64_t floats = 0;
  for (const compute::SlotId slot : slots) floats += 3 * compute::slot_parameter_count(shape, slot);
  return floats * sizeof(float);
}

Expected<void> Snapshot::reserve(std::uint64_t bytes) {
  const std::uint64_t floats = (bytes + sizeof(float) - 1) / sizeof(float);
  if (floats <= capacity_) return {};
  std::unique_ptr<float[]> larger(new (std::nothrow) float[static_cast<std::size_t>(floats)]);
  if (!larger) {
    return make_error(
        ErrorCode::Exhausted,
        fmt::format("no memory for a checkpoint's copy of {} MiB; checkpoints are written slot by slot",
                    bytes >> 20));
  }
  view_ = {};
  buffer_ = std::move(larger);
  capacity_ = floats;
  return {};
}

Expected<void> Snapshot::capture(const TensorView& live) {
  NS_RETURN_IF_ERROR(reserve(floats_in(live) * sizeof(float)));
  view_ = live;
  float* at = buffer_.get();
  for (SlotTensors& slot : view_.slots) {
    slot.parameters = copy(slot.parameters, at);
    slot.moment1 = copy(slot.moment1, at);
    slot.moment2 = copy(slot.moment2, at);
  }
  for (ExtraTensor& extra : view_.extras) extra.values = copy(extra.values, at);
  return {};
}

void Snapshot::release() {
  view_ = {};
  buffer_.reset();
  capacity_ = 0;
}

}  // namespace neuroshard::checkpoint
