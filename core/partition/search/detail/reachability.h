// Which node comes before which, as bit sets: n² / 8 bytes each way.
#pragma once

#include <bit>
#include <cstdint>
#include <vector>

#include "core/partition/graph/tensor_graph.h"

namespace neuroshard::partition::detail {

class BitRows {
 public:
  BitRows(std::size_t rows, std::size_t bits) : words_((bits + 63) / 64), data_(rows * words_) {}
  std::uint64_t* row(std::size_t i) { return data_.data() + i * words_; }
  const std::uint64_t* row(std::size_t i) const { return data_.data() + i * words_; }
  std::size_t words() const { return words_; }
  bool test(std::size_t i, std::size_t bit) const { return (row(i)[bit / 64] >> (bit % 64)) & 1; }
  void set(std::size_t i, std::size_t bit) { row(i)[bit / 64] |= std::uint64_t{1} << (bit % 64); }

 private:
  std::size_t words_;
  std::vector<std::uint64_t> data_;
};

struct Reachability {
  BitRows after, before;  // row v: nodes that need v, nodes that v needs; v itself in neither

  explicit Reachability(const TensorGraph& graph);
};

// Calls visit(bit) for every bit of a & b; b may be null: every bit of a.
template <class Visit>
void for_each_bit(const std::uint64_t* a, const std::uint64_t* b, std::size_t words, Visit visit) {
  for (std::size_t w = 0; w < words; ++w) {
    for (std::uint64_t rest = b ? a[w] & b[w] : a[w]; rest != 0; rest &= rest - 1) {
      visit(static_cast<NodeIndex>(w * 64 + static_cast<std::size_t>(std::countr_zero(rest))));
    }
  }
}

}  // namespace neuroshard::partition::detail
