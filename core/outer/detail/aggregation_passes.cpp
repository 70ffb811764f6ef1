#include "core/outer/detail/aggregation_passes.h"

#include <algorithm>
#include <utility>

#include "core/base/check.h"

namespace neuroshard::outer::detail {
namespace {

// Values of each row that a pass by coordinate reads at a time where rows are decoded: eight rows of it fit
// the second-level cache.
constexpr std::size_t coordinate_slice = 2 * codec_chunk;
static_assert(gram_chunk == trace_chunk, "a total grows by one chunk of the kernels at a time");
static_assert(gram_chunk % codec_chunk == 0 && codec_chunk % kernel_step == 0);

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

float* SliceOutput::room(std::size_t, std::size_t count) {
  if (room_values_ < count) {
    room_ = room_for<float>(count);
    room_values_ = count;
  }
  return room_.get();
}

Expected<void> SliceOutput::done(std::size_t first, std::size_t count) {
  return write_(first, {room_.get(), count});
}

AggregationPasses::AggregationPasses(const AggregationKernels& kernels, DeltaRows& rows,
                                     std::vector<std::size_t> which)
    : kernels_(kernels), rows_(rows), which_(std::move(which)) {
  NS_CHECK(!which_.empty() && rows_.count() >= 1);
}

template <class Pass>
Expected<void> AggregationPasses::each_slice(std::size_t slice, Pass pass) const {
  std::vector<const float*> rows(which_.size());
  NS_RETURN_IF_ERROR(rows_.begin(which_));
  for (std::size_t at = 0; at < rows_.count();) {
    NS_ASSIGN_OR_RETURN(const std::size_t count, rows_.next(slice, rows.data()));
    NS_RETURN_IF_ERROR(pass(rows, at, count));
    at += count;
  }
  return {};
}

template <class Pass>
Expected<void> AggregationPasses::each_chunk(Pass pass) const {
  return each_slice(
      gram_chunk,
      [&](std::vector<const float*>& rows, std::size_t first, std::size_t count) -> Expected<void> {
        for (std::size_t at = 0; at < count; at += gram_chunk) {
          NS_RETURN_IF_ERROR(pass(rows, (first + at) / gram_chunk, std::min(gram_chunk, count - at)));
          for (const float*& row : rows) row += gram_chunk;
        }
        return {};
      });
}

Gram gram_of_sums(const std::vector<double>& triangle, std::size_t n) {
  Gram gram{n, std::vector<double>(n * n)};
  std::size_t at = 0;
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t j = i; j < n; ++j) gram.products[i * n + j] = gram.products[j * n + i] = triangle[at++];
  return gram;
}

namespace {

std::vector<double> triangle_of(const Gram& gram) {
  std::vector<double> triangle;
  triangle.reserve(gram.n * (gram.n + 1) / 2);
  for (std::size_t i = 0; i < gram.n; ++i)
    for (std::size_t j = i; j < gram.n; ++j) triangle.push_back(gram(i, j));
  return triangle;
}

}  // namespace

Expected<std::vector<double>> AggregationPasses::gram_sums(const Measure& measure) const {
  const std::size_t n = which_.size(), padded = rows_of_gram(n);
  Gram gram{n, std::vector<double>(n * n, 0.0)};
  if (!measure.before.empty()) gram = gram_of_sums({measure.before.begin(), measure.before.end()}, n);
  const auto widened = room_for<double>(padded * gram_block), lanes = room_for<double>(padded * padded * 8);
  NS_RETURN_IF_ERROR(each_chunk(
      [&](std::vector<const float*>& rows, std::size_t chunk, std::size_t count) -> Expected<void> {
        kernels_.gram(rows.data(), n, count, gram.products.data(), widened.get(), lanes.get());
        return measure.trace ? measure.trace(chunk, triangle_of(gram)) : Expected<void>();
      }));
  return triangle_of(gram);
}

Expected<std::vector<double>> AggregationPasses::squares(const Measure& measure) const {
  std::vector<double> sums(which_.size(), 0.0);
  if (!measure.before.empty()) sums.assign(measure.before.begin(), measure.before.end());
  NS_RETURN_IF_ERROR(each_chunk(
      [&](std::vector<const float*>& rows, std::size_t chunk, std::size_t count) -> Expected<void> {
        kernels_.squares(rows.data(), rows.size(), count, sums.data());
        return measure.trace ? measure.trace(chunk, sums) : Expected<void>();
      }));
  return sums;
}

template <class Pass>
Expected<bool> AggregationPasses::in_steps(PassOutput& out, Pass pass) const {
  bool finite = true;
  const auto step = [&](std::vector<const float*>& rows, std::size_t at,
                        std::size_t count) -> Expected<void> {
    const std::size_t whole = count / kernel_step * kernel_step, rest = count - whole;
    float* const to = out.room(at, count);
    if (whole > 0) finite &= pass(rows.data(), whole, to);
    if (rest == 0) return out.done(at, count);
    std::vector<float> ends(rows.size() * kernel_step, 0.0f);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      float* const end = ends.data() + i * kernel_step;
      std::copy_n(rows[i] + whole, rest, end);
      rows[i] = end;
    }
    float last[kernel_step];
    finite &= pass(rows.data(), kernel_step, last);
    std::copy_n(last, rest, to + whole);
    return out.done(at, count);
  };
  NS_RETURN_IF_ERROR(each_slice(coordinate_slice, step));
  return finite;
}

Expected<void> AggregationPasses::zeros(PassOutput& out) const {
  for (std::size_t at = 0; at < rows_.count(); at += coordinate_slice) {
    const std::size_t count = std::min(coordinate_slice, rows_.count() - at);
    std::fill_n(out.room(at, count), count, 0.0f);
    NS_RETURN_IF_ERROR(out.done(at, count));
  }
  return {};
}

Expected<bool> AggregationPasses::combine(const std::vector<double>& weights, PassOutput& out) const {
  NS_CHECK(weights.size() == which_.size());
  // Rows without weight are not read: a sum over one chosen row is one pass over that row.
  std::vector<std::size_t> rows;
  std::vector<double> used;
  for (std::size_t i = 0; i < weights.size(); ++i)
    if (weights[i] != 0) {
      rows.push_back(which_[i]);
      used.push_back(weights[i]);
    }
  if (rows.empty()) {
    NS_RETURN_IF_ERROR(zeros(out));
    return true;
  }
  const std::size_t n = rows.size();
  return AggregationPasses(kernels_, rows_, std::move(rows))
      .in_steps(out, [&](const float* const* from, std::size_t count, float* to) {
        return kernels_.combine(from, used.data(), n, count, to);
      });
}

Expected<bool> AggregationPasses::sorted(const std::vector<float>& scales, Kept kept, PassOutput& out) const {
  const std::size_t n = which_.size();
  NS_CHECK(scales.size() == n && kept.low < kept.high && kept.high <= n);
  const bool many = n > max_register_rows;
  const std::vector<Comparator> network = many ? sorting_network(n) : std::vector<Comparator>{};
  const auto block = room_for<float>(many ? n * mix_block : 0);
  return in_steps(out, [&](const float* const* rows, std::size_t count, float* to) {
    return kernels_.sorted(rows, scales.data(), n, count, kept, network.data(), network.size(), block.get(),
                           to);
  });
}

Expected<bool> AggregationPasses::mixed_sorted(const std::vector<float>& scales,
                                               const std::vector<std::uint32_t>& left_out, std::size_t f,
                                               Kept kept, PassOutput& out) const {
  const std::size_t n = which_.size();
  NS_CHECK(scales.size() == n && left_out.size() == n * f && kept.low < kept.high && kept.high <= n);
  const std::vector<Comparator> network =
      n > max_register_rows ? sorting_network(n) : std::vector<Comparator>{};
  const auto widened = room_for<double>(n * kernel_step);
  const auto block = room_for<float>(n * mix_block);
  return in_steps(out, [&](const float* const* rows, std::size_t count, float* to) {
    kernels_.mixed_sorted(rows, scales.data(), n, count, left_out.data(), f, kept, network.data(),
                          network.size(), widened.get(), block.get(), to);
    return true;
  });
}

}  // namespace neuroshard::outer::detail
