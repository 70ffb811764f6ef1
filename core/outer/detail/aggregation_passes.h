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

// Some rows, each of one value at least, which stay the caller's.  Threads: one. Floating-point modes are the
// caller's too (aggregate.cpp sets them).
class AggregationPasses {
 public:
  AggregationPasses(const AggregationKernels& kernels, DeltaRows& rows, std::vector<std::size_t> which);

  std::size_t rows() const { return which_.size(); }

  // Inner products of all pairs; NaN or infinite where a row is not finite.
  Gram gram() const;
  // The diagonal of that alone, the same bits.
  std::vector<double> squares() const;

  // The rest write `count` values and return false when a value of a row that they read is not finite.
  bool combine(const std::vector<double>& weights, Span<float> out) const;
  bool sorted(const std::vector<float>& scales, Kept kept, Span<float> out) const;
  // Finite rows only.
  void mixed_sorted(const std::vector<float>& scales, const std::vector<std::uint32_t>& left_out,
                    std::size_t f, Kept kept, Span<float> out) const;

 private:
  // pass(rows, at, count) over all slices.
  template <class Pass>
  void each_slice(std::size_t slice, Pass pass) const;
  // pass(rows, count, out) over the whole steps, then over the rest with zeros behind it.
  template <class Pass>
  bool in_steps(Span<float> out, Pass pass) const;

  const AggregationKernels& kernels_;
  DeltaRows& rows_;
  std::vector<std::size_t> which_;
};

// Comparators that sort n rows.
std::vector<Comparator> sorting_network(std::size_t n);

}  // namespace neuroshard::outer::detail
