// Passes over the deltas of one aggregation: cuts them into what the kernels take, keeps their buffers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/base/span.h"
#include "core/outer/detail/aggregation_kernels.h"
#include "core/outer/detail/delta_rows.h"
#include "core/outer/detail/gram.h"

namespace neuroshard::outer::detail {

// Where the values of a pass go, in order.
class PassOutput {
 public:
  virtual ~PassOutput() = default;
  // Room for the next `count` values from `first` on, until done().
  virtual float* room(std::size_t first, std::size_t count) = 0;
  virtual Expected<void> done(std::size_t first, std::size_t count) = 0;
};

// All in memory, which stays the caller's.
class MemoryOutput final : public PassOutput {
 public:
  explicit MemoryOutput(Span<float> values) : values_(values) {}
  float* room(std::size_t first, std::size_t) override { return values_.data() + first; }
  Expected<void> done(std::size_t, std::size_t) override { return {}; }

 private:
  Span<float> values_;
};

// A slice at a time in memory.
class SliceOutput final : public PassOutput {
 public:
  explicit SliceOutput(const WriteValues& write) : write_(write) {}
  float* room(std::size_t first, std::size_t count) override;
  Expected<void> done(std::size_t first, std::size_t count) override;

 private:
  const WriteValues& write_;
  AlignedRoom<float> room_;
  std::size_t room_values_ = 0;
};

// How a first pass goes: on from earlier sums, and to whom its sums go.
struct Measure {
  Span<const double> before;  // empty: from zeros
  Span<const double> known;   // the sums over all values; not empty: no pass is needed
  WriteSums trace;            // null: nobody
};
// The matrix of n rows by the upper triangle of it.
Gram gram_of_sums(const std::vector<double>& triangle, std::size_t n);

// Some rows, each of one value at least, which stay the caller's.  Threads: one. Floating-point modes are the
// caller's too (aggregate.cpp sets them).  Errors, of all passes: those of the rows' disk and of `out`.
class AggregationPasses {
 public:
  AggregationPasses(const AggregationKernels& kernels, DeltaRows& rows, std::vector<std::size_t> which);

  std::size_t rows() const { return which_.size(); }

  // Inner products of all pairs, the upper triangle row by row; NaN or infinite where a row is not finite.
  Expected<std::vector<double>> gram_sums(const Measure& measure) const;
  // The diagonal of that alone, the same bits.
  Expected<std::vector<double>> squares(const Measure& measure) const;

  // The rest write `count` values and return false when a value of a row that they read is not finite.
  Expected<bool> combine(const std::vector<double>& weights, PassOutput& out) const;
  Expected<bool> sorted(const std::vector<float>& scales, Kept kept, PassOutput& out) const;
  // Finite rows only.
  Expected<bool> mixed_sorted(const std::vector<float>& scales, const std::vector<std::uint32_t>& left_out,
                              std::size_t f, Kept kept, PassOutput& out) const;

 private:
  // pass(rows, at, count) over all slices returns Expected<void>.
  template <class Pass>
  Expected<void> each_slice(std::size_t slice, Pass pass) const;
  // pass(rows, chunk, count) over all chunks of gram_chunk values, likewise.
  template <class Pass>
  Expected<void> each_chunk(Pass pass) const;
  // pass(rows, count, out) over the whole steps, then over the rest with zeros behind it.
  template <class Pass>
  Expected<bool> in_steps(PassOutput& out, Pass pass) const;
  Expected<void> zeros(PassOutput& out) const;

  const AggregationKernels& kernels_;
  DeltaRows& rows_;
  std::vector<std::size_t> which_;
};

// Comparators that sort n rows.
std::vector<Comparator> sorting_network(std::size_t n);

}  // namespace neuroshard::outer::detail
