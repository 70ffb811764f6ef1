// Robust aggregation as the papers write it: plain loops over whole vectors in double, nothing shared with
// core.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <vector>

namespace neuroshard::outer::oracle {

using Vector = std::vector<double>;

inline double distance(const Vector& a, const Vector& b) {
  double sum = 0;
  for (std::size_t c = 0; c < a.size(); ++c) sum += (a[c] - b[c]) * (a[c] - b[c]);
  return std::sqrt(sum);
}
inline double norm(const Vector& a) {
  return distance(a, Vector(a.size(), 0.0));
}
inline double lower_median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[(values.size() - 1) / 2];
}

inline std::vector<Vector> clip(std::vector<Vector> rows) {
  std::vector<double> norms;
  for (const Vector& row : rows) norms.push_back(norm(row));
  const double median = lower_median(norms);
  for (std::size_t i = 0; i < rows.size(); ++i)
    if (norms[i] > median)
      for (double& value : rows[i]) value *= median / norms[i];
  return rows;
}

inline Vector mean(const std::vector<Vector>& rows, std::vector<double> weights = {}) {
  if (weights.empty()) weights.assign(rows.size(), 1);
  const double all = std::accumulate(weights.begin(), weights.end(), 0.0);
  Vector result(rows[0].size(), 0.0);
  for (std::size_t i = 0; i < rows.size(); ++i)
    for (std::size_t c = 0; c < result.size(); ++c) result[c] += weights[i] / all * rows[i][c];
  return result;
}

inline std::vector<Vector> mix(const std::vector<Vector>& rows, std::size_t f) {
  std::vector<Vector> mixed;
  for (const Vector& row : rows) {
    std::vector<std::size_t> order(rows.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      return distance(row, rows[a]) < distance(row, rows[b]);
    });
    std::vector<Vector> nearest;
    for (std::size_t k = 0; k < rows.size() - f; ++k) nearest.push_back(rows[order[k]]);
    mixed.push_back(mean(nearest));
  }
  return mixed;
}

// Per coordinate: sort, drop `low` from below and `high` from above, average.
inline Vector middle(const std::vector<Vector>& rows, std::size_t low, std::size_t high) {
  Vector result;
  for (std::size_t c = 0; c < rows[0].size(); ++c) {
    std::vector<double> values;
    for (const Vector& row : rows) values.push_back(row[c]);
    std::sort(values.begin(), values.end());
    result.push_back(std::accumulate(values.begin() + static_cast<long>(low),
                                     values.end() - static_cast<long>(high), 0.0) /
                     static_cast<double>(rows.size() - low - high));
  }
  return result;
}
inline Vector trimmed_mean(const std::vector<Vector>& rows, std::size_t f) {
  return middle(rows, f, f);
}
inline Vector median(const std::vector<Vector>& rows) {
  return middle(rows, (rows.size() - 1) / 2, rows.size() - 1 - (rows.size() - 1) / 2);
}

inline Vector krum(const std::vector<Vector>& rows, std::size_t f, std::size_t chosen) {
  std::vector<std::pair<double, std::size_t>> scores;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    std::vector<double> squares;
    for (std::size_t j = 0; j < rows.size(); ++j)
      if (j != i) squares.push_back(distance(rows[i], rows[j]) * distance(rows[i], rows[j]));
    std::sort(squares.begin(), squares.end());
    scores.push_back({std::accumulate(squares.begin(), squares.end() - static_cast<long>(f + 1), 0.0), i});
  }
  std::sort(scores.begin(), scores.end());
  std::vector<Vector> best;
  for (std::size_t k = 0; k < chosen; ++k) best.push_back(rows[scores[k].second]);
  return mean(best);
}

inline Vector centered_clipping(const std::vector<Vector>& rows, int iterations) {
  Vector v(rows[0].size(), 0.0);
  for (int iteration = 0; iteration < iterations; ++iteration) {
    std::vector<double> distances;
    for (const Vector& row : rows) distances.push_back(distance(row, v));
    const double tau = lower_median(distances);
    Vector next = v;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const double factor = distances[i] > tau ? tau / distances[i] : 1;
      for (std::size_t c = 0; c < v.size(); ++c)
        next[c] += factor * (rows[i][c] - v[c]) / static_cast<double>(rows.size());
    }
    v = next;
  }
  return v;
}

inline Vector geometric_median(const std::vector<Vector>& rows, int iterations) {
  Vector v = mean(rows);
  for (int iteration = 0; iteration < iterations; ++iteration) {
    std::vector<double> weights;
    for (const Vector& row : rows) weights.push_back(1 / distance(row, v));
    v = mean(rows, weights);
  }
  return v;
}

}  // namespace neuroshard::outer::oracle
