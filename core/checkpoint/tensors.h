// The contents of a checkpoint as views, and Snapshot: a copy, so that training does not wait for the disk.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/base/expected.h"
#include "core/base/span.h"
#include "core/base/spool.h"
#include "core/compute/model_shape.h"
#include "core/compute/slot.h"
#include "core/platform/process/large_buffer.h"
#include "core/tensor/shape.h"

namespace neuroshard::checkpoint {

// A flat fp32 buffer: in memory, which stays the caller's, or in a source of bytes.
class Floats {
 public:
  Floats() = default;
  Floats(Span<const float> memory) : memory_(memory), count_(memory.size()) {}  // NOLINT: implicit on purpose
  Floats(const std::vector<float>& memory) : Floats(Span<const float>(memory)) {}  // NOLINT
  // count values, little-endian, from `offset` on.
  Floats(ByteSourcePtr bytes, std::uint64_t offset, std::size_t count)
      : bytes_(std::move(bytes)), offset_(offset), count_(count) {}

  std::size_t size() const { return count_; }
  // Empty when they are in a source.
  Span<const float> memory() const { return memory_; }
  // In order, by parts of at most a megabyte unless they are in memory.  Errors: those of the source and of use.
  Expected<void> each_part(const std::function<Expected<void>(ByteSpan bytes)>& use) const;

 private:
  Span<const float> memory_;
  ByteSourcePtr bytes_;
  std::uint64_t offset_ = 0;
  std::size_t count_ = 0;
};

// One slot's buffers (core/compute/slot.h), slot_parameter_count floats each.
struct SlotTensors {
  compute::SlotId id;
  Floats parameters;
  Floats moment1;
  Floats moment2;
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

// Copies of everything in a TensorView: in one buffer, reused between saves, which the memory plan counts as
// bytes_for(), or in the spool.
//
// The copy is made in parts, by whichever threads have time for it:
//   begin() → copy_part() until it is false, on any threads → wait_copied() → view()
// Threads: copy_part() and wait_copied() any, at once; the others one at a time and only while nothing is
// copied.
class Snapshot {
 public:
  // spool: null for copies in memory only.
  explicit Snapshot(std::shared_ptr<Spool> spool = nullptr) : spool_(std::move(spool)) {}

  // The memory that a copy of these slots takes, without extras.
  static std::uint64_t bytes_for(const compute::ModelShape& shape, Span<const compute::SlotId> slots);

  // Makes room; Exhausted when memory is short (the present content is kept then).
  Expected<void> reserve(std::uint64_t bytes);
  // The room resident: the first copy is as fast as later ones.
  void touch() { buffer_.touch(); }

  // Takes the list of what is to be copied, and the extras themselves. The slots of `live`, which are in memory,
  // must stay as they are until wait_copied() has returned. Exhausted as for reserve(), or those of the spool.
  enum class Where : std::uint8_t { Memory, Spool };
  Expected<void> begin(const TensorView& live, Where where);
  bool has_spool() const { return spool_ != nullptr; }
  // Copies one further part; false when there is none left to take.
  bool copy_part();
  // Until the parts that other threads have taken are complete too. They take microseconds each.
  void wait_copied();
  // Drops what begin() has listed; nobody may be copying.
  void abandon();

  // The copy, after wait_copied(), once; valid until the next begin().  Errors: those of the spool.
  Expected<TensorView> view();
  std::uint64_t capacity_bytes() const { return buffer_.size(); }
  // Gives the buffer back.
  void release();

 private:
  struct Part {
    Span<const float> from;
    std::uint64_t to;  // offset in the copy, in floats
  };
  void plan_copy(const Floats& from, std::uint64_t& to);
  Expected<void> copy(const Part& part);

  const std::shared_ptr<Spool> spool_;
  platform::LargeBuffer buffer_;
  std::unique_ptr<SpoolItem> item_;  // null: the copy is in the buffer
  TensorView live_;
  std::vector<std::vector<float>> extras_;
  std::vector<Part> parts_;
  std::atomic<std::size_t> next_part_{0};
  std::mutex mutex_;
  std::condition_variable copied_;
  std::optional<Error> failed_;  // under mutex_, as the next
  std::size_t parts_done_ = 0;
};

}  // namespace neuroshard::checkpoint
