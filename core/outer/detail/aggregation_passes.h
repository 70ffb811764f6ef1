// Passes over the deltas of one aggregation: cuts them into what the kernels take, keeps their buffers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/base/span.h"
#include "core/outer/detail/aggregation_kernels.h"
#include "core/outer/detail/gram.h"

namespace neuroshard::outer::detail {

// Rows stay the caller's.  Threads: one. Floating-point modes are the caller's too (aggregate.cpp sets them).
class AggregationPasses {
 public:
  AggregationPasses(const AggregationKernels& kernels, std::vector<const float*> rows, std::size_t count);

  std::size_t rows() const { return rows_.size(); }

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
  // pass(rows, count, out) over the whole steps, then over the rest with zeros behind it.
  template <class Pass>
  bool in_steps(Span<float> out, Pass pass) const;

  const AggregationKernels& kernels_;
  std::vector<const float*> rows_;
  std::size_t count_;
};

// Comparators that sort n rows.
std::vector<Comparator> sorting_network(std::size_t n);

}  // namespace neuroshard::outer::detail
