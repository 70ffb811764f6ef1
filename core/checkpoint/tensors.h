// What a checkpoint is made of, as views, and Snapshot: a copy of it that training need not wait for.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/base/expected.h"
#include "core/base/span.h"
#include "core/compute/model_shape.h"
#include "core/compute/slot.h"
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
// Threads: one at a time.
class Snapshot {
 public:
  // What capture() of these slots will keep, without extras.
  static std::uint64_t bytes_for(const compute::ModelShape& shape, Span<const compute::SlotId> slots);

  // Makes room; Exhausted when memory is short (the present content is kept then).
  Expected<void> reserve(std::uint64_t bytes);
  // Copies at memory speed; this is the only moment in which training stands still. Exhausted as for
  // reserve().
  Expected<void> capture(const TensorView& live);
  // The copy; valid until the next capture().
  const TensorView& view() const { return view_; }
  std::uint64_t capacity_bytes() const { return capacity_ * sizeof(float); }
  // Gives the buffer back.
  void release();

 private:
  std::unique_ptr<float[]> buffer_;
  std::uint64_t capacity_ = 0;  // floats
  TensorView view_;
};

}  // namespace neuroshard::checkpoint
