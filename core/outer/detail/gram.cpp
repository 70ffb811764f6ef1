#include "core/outer/detail/gram.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/base/check.h"

namespace neuroshard::outer::detail {
namespace {

// |x_i − v|, v the sum of the rows with these weights.
std::vector<double> distances_to(const Gram& gram, const std::vector<double>& weights) {
  std::vector<double> with_v(gram.n, 0.0);  // x_i · v
  double v_v = 0;
  for (std::size_t i = 0; i < gram.n; ++i) {
    for (std::size_t j = 0; j < gram.n; ++j) with_v[i] += gram(i, j) * weights[j];
    v_v += weights[i] * with_v[i];
  }
  std::vector<double> distances(gram.n);
  for (std::size_t i = 0; i < gram.n; ++i)
    distances[i] = std::sqrt(std::max(0.0, (gram(i, i) + v_v) - 2 * with_v[i]));
  return distances;
}

}  // namespace

double lower_median(std::vector<double> values) {
  NS_CHECK(!values.empty());
  const std::size_t middle = (values.size() - 1) / 2;
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(middle), values.end());
  return values[middle];
}

Gram scaled(const Gram& gram, const std::vector<double>& factors) {
  Gram result = gram;
  for (std::size_t i = 0; i < gram.n; ++i)
    for (std::size_t j = 0; j < gram.n; ++j)
      result.products[i * gram.n + j] = gram(i, j) * (factors[i] * factors[j]);
  return result;
}

double squared_distance(const Gram& gram, std::size_t i, std::size_t j) {
  return std::max(0.0, (gram(i, i) + gram(j, j)) - 2 * gram(i, j));
}

std::vector<std::uint32_t> left_out_by_mixing(const Gram& gram, std::size_t f) {
  NS_CHECK(f < gram.n);
  std::vector<std::uint32_t> left_out;
  std::vector<std::uint32_t> others;
  for (std::size_t i = 0; i < gram.n; ++i) {
    others.resize(gram.n);
    std::iota(others.begin(), others.end(), 0u);
    others.erase(others.begin() + static_cast<std::ptrdiff_t>(i));
    std::sort(others.begin(), others.end(), [&](std::uint32_t a, std::uint32_t b) {
      const double to_a = squared_distance(gram, i, a), to_b = squared_distance(gram, i, b);
      return to_a != to_b ? to_a < to_b : a < b;
    });
    const auto furthest = others.end() - static_cast<std::ptrdiff_t>(f);
    std::sort(furthest, others.end());
    left_out.insert(left_out.end(), furthest, others.end());
  }
  return left_out;
}

std::vector<double> mixing_matrix(std::size_t n, std::size_t f, const std::vector<std::uint32_t>& left_out) {
  std::vector<double> matrix(n * n, 1.0 / static_cast<double>(n - f));
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t k = 0; k < f; ++k) matrix[i * n + left_out[i * f + k]] = 0;
  return matrix;
}

Gram mixed(const Gram& gram, const std::vector<double>& matrix) {
  const std::size_t n = gram.n;
  std::vector<double> left(n * n, 0.0);
  Gram result{n, std::vector<double>(n * n, 0.0)};
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t k = 0; k < n; ++k)
      for (std::size_t j = 0; j < n; ++j) left[i * n + j] += matrix[i * n + k] * gram(k, j);
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t j = i; j < n; ++j) {
      double sum = 0;
      for (std::size_t k = 0; k < n; ++k) sum += left[i * n + k] * matrix[j * n + k];
      result.products[i * n + j] = result.products[j * n + i] = sum;
    }
  return result;
}

std::vector<double> krum_weights(const Gram& gram, std::size_t f, std::size_t chosen) {
  const std::size_t n = gram.n;
  NS_CHECK(n >= 2 * f + 3 && chosen >= 1 && chosen <= n);
  std::vector<double> scores(n);
  for (std::size_t i = 0; i < n; ++i) {
    std::vector<double> to_others;
    for (std::size_t j = 0; j < n; ++j)
      if (j != i) to_others.push_back(squared_distance(gram, i, j));
    std::sort(to_others.begin(), to_others.end());
    for (std::size_t k = 0; k < n - f - 2; ++k) scores[i] += to_others[k];
  }
  std::vector<std::size_t> order(n);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return scores[a] < scores[b]; });
  std::vector<double> weights(n, 0.0);
  for (std::size_t k = 0; k < chosen; ++k) weights[order[k]] = 1.0 / static_cast<double>(chosen);
  return weights;
}

std::vector<double> centered_clipping_weights(const Gram& gram, std::uint32_t iterations) {
  const std::size_t n = gram.n;
  std::vector<double> weights(n, 0.0);
  for (std::uint32_t iteration = 0; iteration < iterations; ++iteration) {
    const std::vector<double> distances = distances_to(gram, weights);
    const double tau = lower_median(distances);
    double moved = 0;
    std::vector<double> shares(n);
    for (std::size_t i = 0; i < n; ++i) {
      shares[i] = (distances[i] > tau ? tau / distances[i] : 1.0) / static_cast<double>(n);
      moved += shares[i];
    }
    for (std::size_t i = 0; i < n; ++i) weights[i] = weights[i] * (1 - moved) + shares[i];
  }
  return weights;
}

std::vector<double> geometric_median_weights(const Gram& gram, std::uint32_t iterations) {
  const std::size_t n = gram.n;
  std::vector<double> weights(n, 1.0 / static_cast<double>(n));
  double least = 0;
  for (std::uint32_t iteration = 0; iteration < iterations; ++iteration) {
    std::vector<double> distances = distances_to(gram, weights);
    if (iteration == 0) least = 1e-6 * lower_median(distances);
    double sum = 0;
    for (double& distance : distances) {
      distance = std::max(distance, least);
      if (distance == 0) return weights;  // at least half of them are the mean itself
      sum += 1 / distance;
    }
    for (std::size_t i = 0; i < n; ++i) weights[i] = 1 / distances[i] / sum;
  }
  return weights;
}

}  // namespace neuroshard::outer::detail
