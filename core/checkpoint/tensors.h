// The contents of a checkpoint as views, and Snapshot: a copy, so that training does not wait for the disk.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "core/base/expected.h"
#include "core/base/span.h"
#include "core/compute/model_shape.h"
#include "core/compute/slot.h"
#include "core/platform/process/large_buffer.h"
#include "core/tensor/shape.h"

namespace neuroshard::checkpoint {

// One slot's flat fp32 buffers (core/compute/slot.h), slot_parameter_count floats each.
struct SlotTensors {
  compute::SlotId id;
  Span<const float> parameters;
  Span<const float> moment1;
  Span<const float> moment2;
};

// Any further floats that training continues from (balancing biases of the router, …). Names: [a-z0-9_.]+.
struct ExtraTensor {
  std::string name;
  tensor::Dims dims;
  Span<const float> values;
};

// Views; whoever made it keeps the floats alive.
struct TensorView {
  std::vector<SlotTensors> slots;
  std::vector<ExtraTensor> extras;
};

// One buffer, reused between saves, that holds copies of everything in a TensorView. The memory plan counts
// bytes_for(); where it gives no room, the writer works straight from the live view while training is held.
//
// The copy is made in parts, by whichever threads have time for it:
//   begin() → copy_part() until it is false, on any threads → wait_copied() → view()
// Threads: copy_part() and wait_copied() any, at once; the others one at a time and only while nothing is
// copied.
class Snapshot {
 public:
  // The memory that a copy of these slots takes, without extras.
  static std::uint64_t bytes_for(const compute::ModelShape& shape, Span<const compute::SlotId> slots);

  // Makes room; Exhausted when memory is short (the present content is kept then).
  Expected<void> reserve(std::uint64_t bytes);
  // The room resident: the first copy is as fast as later ones.
  void touch() { buffer_.touch(); }

  // Takes the list of what is to be copied, and the extras themselves. The slots of `live` must stay as they
  // are until wait_copied() has returned. Exhausted as for reserve().
  Expected<void> begin(const TensorView& live);
  // Copies one further part at memory speed; false when there is none left to take.
  bool copy_part();
  // Until the parts that other threads have taken are complete too. They take microseconds each.
  void wait_copied();
  // Drops what begin() has listed; nobody may be copying.
  void abandon();

  // The copy, complete after wait_copied(); valid until the next begin().
  const TensorView& view() const { return view_; }
  std::uint64_t capacity_bytes() const { return buffer_.size(); }
  // Gives the buffer back.
  void release();

 private:
  struct Part {
    const float* from;
    float* to;
    std::size_t floats;
  };
  Span<const float> plan_copy(Span<const float> from, float*& to);

  platform::LargeBuffer buffer_;
  TensorView view_;
  std::vector<Part> parts_;
  std::atomic<std::size_t> next_part_{0};
  std::mutex mutex_;
  std::condition_variable copied_;
  std::size_t parts_done_ = 0;  // under mutex_
};

}  // namespace neuroshard::checkpoint
