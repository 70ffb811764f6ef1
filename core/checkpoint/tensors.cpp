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

Expected<void> Floats::each_part(const std::function<Expected<void>(ByteSpan bytes)>& use) const {
  if (!bytes_) return use(as_bytes(memory_));
  constexpr std::size_t at_once = std::size_t{1} << 20;
  return read_in_parts(*part_of(bytes_, offset_, count_ * sizeof(float)), at_once,
                       [&](std::uint64_t, ByteSpan bytes) { return use(bytes); });
}

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
  buffer_ = std::move(larger);
  return {};
}

void Snapshot::plan_copy(const Floats& from, std::uint64_t& to) {
  const Span<const float> floats = from.memory();
  for (std::size_t at = 0; at < floats.size(); at += part_floats)
    parts_.push_back({floats.subspan(at, std::min(part_floats, floats.size() - at)), to + at});
  to += floats.size();
}

Expected<void> Snapshot::begin(const TensorView& live, Where where) {
  abandon();
  const std::uint64_t bytes = floats_in(live) * sizeof(float);
  if (where == Where::Spool) {
    NS_ASSIGN_OR_RETURN(item_, spool_->create(bytes));
  } else {
    NS_RETURN_IF_ERROR(reserve(bytes));
  }
  live_ = live;
  // Few floats, in a buffer that their owner fills anew for the next save.
  for (const ExtraTensor& extra : live_.extras)
    extras_.emplace_back(extra.values.begin(), extra.values.end());
  std::uint64_t to = 0;
  for (const SlotTensors& slot : live_.slots)
    for (const Floats* floats : {&slot.parameters, &slot.moment1, &slot.moment2}) plan_copy(*floats, to);
  return {};
}

Expected<void> Snapshot::copy(const Part& part) {
  if (item_) return item_->write_at(part.to * sizeof(float), as_bytes(part.from));
  std::memcpy(reinterpret_cast<float*>(buffer_.data()) + part.to, part.from.data(), part.from.size_bytes());
  return {};
}

bool Snapshot::copy_part() {
  const std::size_t index = next_part_.fetch_add(1, std::memory_order_relaxed);
  if (index >= parts_.size()) {
    next_part_.store(parts_.size(), std::memory_order_relaxed);  // keeps the count from running away
    return false;
  }
  const Expected<void> copied = copy(parts_[index]);
  bool last;
  {
    const std::lock_guard lock(mutex_);
    if (!copied.ok() && !failed_) failed_ = copied.error();
    last = ++parts_done_ == parts_.size();
  }
  if (last) copied_.notify_all();
  return true;
}

Expected<TensorView> Snapshot::view() {
  if (failed_) return *failed_;
  TensorView view = live_;
  ByteSourcePtr spooled;
  if (item_) {
    NS_ASSIGN_OR_RETURN(spooled, item_->finish(floats_in(live_) * sizeof(float)));
  }
  std::uint64_t at = 0;
  for (SlotTensors& slot : view.slots)
    for (Floats* floats : {&slot.parameters, &slot.moment1, &slot.moment2}) {
      const std::size_t count = floats->size();
      *floats = spooled ? Floats(spooled, at * sizeof(float), count)
                        : Floats({reinterpret_cast<const float*>(buffer_.data()) + at, count});
      at += count;
    }
  for (std::size_t i = 0; i < extras_.size(); ++i) view.extras[i].values = extras_[i];
  return view;
}

void Snapshot::wait_copied() {
  std::unique_lock lock(mutex_);
  copied_.wait(lock, [this] { return parts_done_ == parts_.size(); });
}

void Snapshot::abandon() {
  parts_.clear();
  extras_.clear();
  live_ = {};
  item_.reset();
  failed_.reset();
  next_part_ = 0;
  parts_done_ = 0;
}

void Snapshot::release() {
  abandon();
  buffer_ = {};
}

}  // namespace neuroshard::checkpoint
