// Rules of aggregation on the Gram matrix alone. Distances among deltas, and to anything that is a weighted
// sum of them, follow from their inner products; so Krum, centered clipping and the geometric median choose
// the weights of a sum here, in O(n²) per iteration, whatever the model's size. Plain fp64 loops in the order
// of the rows: the same bits everywhere.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace neuroshard::outer::detail {

// Symmetric [n, n].
struct Gram {
  std::size_t n = 0;
  std::vector<double> products;

  double operator()(std::size_t i, std::size_t j) const { return products[i * n + j]; }
};

// The element at (size − 1) / 2 of the sorted values; size ≥ 1.
double lower_median(std::vector<double> values);

// The Gram matrix of the rows, each times its factor.
Gram scaled(const Gram& gram, const std::vector<double>& factors);
// Squared distance of two rows, at least 0. Exactly 0 for equal rows.
double squared_distance(const Gram& gram, std::size_t i, std::size_t j);

// For each row the f others that are furthest from it (of equal distance, the higher index is the further),
// in the order of their indices. f < n.
std::vector<std::uint32_t> left_out_by_mixing(const Gram& gram, std::size_t f);
// Row i: the weights by which y_i = mean of the nearest n − f is made of the rows. [n, n]
std::vector<double> mixing_matrix(std::size_t n, std::size_t f, const std::vector<std::uint32_t>& left_out);
// The Gram matrix of the mixed rows, M·G·Mᵀ.
Gram mixed(const Gram& gram, const std::vector<double>& matrix);

// Weights of the rows.
// Equal ones for the `chosen` best by Krum's score: the sum of squared distances to the n − f − 2 nearest
// others (ties: the lower index).
std::vector<double> krum_weights(const Gram& gram, std::size_t f, std::size_t chosen);
// v ← v + mean((x_i − v)·min(1, tau / |x_i − v|)) from v = 0, tau the lower median of |x_i − v| in each
// iteration. The weights may sum to less than 1: what is missing is the start, 0.
std::vector<double> centered_clipping_weights(const Gram& gram, std::uint32_t iterations);
// Weiszfeld's iteration from the mean, distances at least 1e-6 of the first ones' lower median.
std::vector<double> geometric_median_weights(const Gram& gram, std::uint32_t iterations);

}  // namespace neuroshard::outer::detail
