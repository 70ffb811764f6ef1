#include "core/outer/detail/aggregation_passes.h"

#include <algorithm>
#include <memory>
#include <new>
#include <utility>

#include "core/base/check.h"

namespace neuroshard::outer::detail {
namespace {

// Room for kernels, from the start of a cache line on: a vector that lies across two lines costs twice.
constexpr std::align_val_t cache_line{64};
struct DeleteAligned {
  template <class T>
  void operator()(T* values) const {
    ::operator delete[](values, cache_line);
  }
};
template <class T>
std::unique_ptr<T[], DeleteAligned> room_for(std::size_t values) {
  return std::unique_ptr<T[], DeleteAligned>(new (cache_line) T[values]);
}

}  // namespace

std::vector<Comparator> sorting_network(std::size_t n) {
  std::vector<Comparator> network;
  for (std::size_t p = 1; p < n; p *= 2)
    for (std::size_t k = p; k >= 1; k /= 2)
      for (std::size_t j = k % p; j + k < n; j += 2 * k)
        for (std::size_t i = 0; i < k && i + j + k < n; ++i)
          if ((i + j) / (2 * p) == (i + j + k) / (2 * p))
            network.push_back({static_cast<std::uint16_t>(i + j), static_cast<std::uint16_t>(i + j + k)});
  return network;
}

AggregationPasses::AggregationPasses(const AggregationKernels& kernels, std::vector<const float*> rows,
                                     std::size_t count)
    : kernels_(kernels), rows_(std::move(rows)), count_(count) {
  NS_CHECK(!rows_.empty() && count >= 1);
}

Gram AggregationPasses::gram() const {
  const std::size_t n = rows_.size(), padded = rows_of_gram(n);
  Gram gram{n, std::vector<double>(n * n, 0.0)};
  const auto widened = room_for<double>(padded * gram_block), lanes = room_for<double>(padded * padded * 8);
  std::vector<const float*> rows(n);
  for (std::size_t at = 0; at < count_; at += gram_chunk) {
    for (std::size_t i = 0; i < n; ++i) rows[i] = rows_[i] + at;
    kernels_.gram(rows.data(), n, std::min(gram_chunk, count_ - at), gram.products.data(), widened.get(),
                  lanes.get());
  }
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t j = 0; j < i; ++j) gram.products[i * n + j] = gram.products[j * n + i];
  return gram;
}

std::vector<double> AggregationPasses::squares() const {
  const std::size_t n = rows_.size();
  std::vector<double> sums(n, 0.0);
  std::vector<const float*> rows(n);
  for (std::size_t at = 0; at < count_; at += gram_chunk) {
    for (std::size_t i = 0; i < n; ++i) rows[i] = rows_[i] + at;
    kernels_.squares(rows.data(), n, std::min(gram_chunk, count_ - at), sums.data());
  }
  return sums;
}

template <class Pass>
bool AggregationPasses::in_steps(Span<float> out, Pass pass) const {
  NS_CHECK(out.size() == count_);
  const std::size_t whole = count_ / kernel_step * kernel_step, rest = count_ - whole;
  bool finite = whole == 0 || pass(rows_.data(), whole, out.data());
  if (rest == 0) return finite;
  std::vector<float> ends(rows_.size() * kernel_step, 0.0f);
  std::vector<const float*> rows(rows_.size());
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    std::copy_n(rows_[i] + whole, rest, ends.data() + i * kernel_step);
    rows[i] = ends.data() + i * kernel_step;
  }
  float last[kernel_step];
  finite &= pass(rows.data(), kernel_step, last);
  std::copy_n(last, rest, out.data() + whole);
  return finite;
}

bool AggregationPasses::combine(const std::vector<double>& weights, Span<float> out) const {
  NS_CHECK(weights.size() == rows_.size());
  // Rows without weight are not read: a sum over one chosen row is one pass over that row.
  std::vector<const float*> rows;
  std::vector<double> used;
  for (std::size_t i = 0; i < weights.size(); ++i)
    if (weights[i] != 0) {
      rows.push_back(rows_[i]);
      used.push_back(weights[i]);
    }
  if (rows.empty()) {
    std::fill(out.begin(), out.end(), 0.0f);
    return true;
  }
  const std::size_t n = rows.size();
  return AggregationPasses(kernels_, std::move(rows), count_)
      .in_steps(out, [&](const float* const* from, std::size_t count, float* to) {
        return kernels_.combine(from, used.data(), n, count, to);
      });
}

bool AggregationPasses::sorted(const std::vector<float>& scales, Kept kept, Span<float> out) const {
  const std::size_t n = rows_.size();
  NS_CHECK(scales.size() == n && kept.low < kept.high && kept.high <= n);
  const bool many = n > max_register_rows;
  const std::vector<Comparator> network = many ? sorting_network(n) : std::vector<Comparator>{};
  const auto block = room_for<float>(many ? n * mix_block : 0);
  return in_steps(out, [&](const float* const* rows, std::size_t count, float* to) {
    return kernels_.sorted(rows, scales.data(), n, count, kept, network.data(), network.size(), block.get(),
                           to);
  });
}

void AggregationPasses::mixed_sorted(const std::vector<float>& scales,
                                     const std::vector<std::uint32_t>& left_out, std::size_t f, Kept kept,
                                     Span<float> out) const {
  const std::size_t n = rows_.size();
  NS_CHECK(scales.size() == n && left_out.size() == n * f && kept.low < kept.high && kept.high <= n);
  const std::vector<Comparator> network =
      n > max_register_rows ? sorting_network(n) : std::vector<Comparator>{};
  const auto widened = room_for<double>(n * kernel_step);
  const auto block = room_for<float>(n * mix_block);
  in_steps(out, [&](const float* const* rows, std::size_t count, float* to) {
    kernels_.mixed_sorted(rows, scales.data(), n, count, left_out.data(), f, kept, network.data(),
                          network.size(), widened.get(), block.get(), to);
    return true;
  });
}

}  // namespace neuroshard::outer::detail
