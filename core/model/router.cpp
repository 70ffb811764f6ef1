#include "core/model/router.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/model/products.h"
#include "core/model/tensors.h"

namespace neuroshard::model {
namespace {

// Fewer are routed before another thread has woken up.
constexpr std::int64_t least_parallel_tokens = 256;

// Softmax of one token's logits in place; returns log Σ exp.
float softmax_row(float* row, std::int64_t experts) {
  const float highest = *std::max_element(row, row + experts);
  float sum = 0;
  for (std::int64_t e = 0; e < experts; ++e) sum += row[e] = std::exp(row[e] - highest);
  for (std::int64_t e = 0; e < experts; ++e) row[e] /= sum;
  return highest + std::log(sum);
}

void choose(const float* logits, const float* bias, std::int64_t experts, std::int64_t choices,
            std::int32_t* chosen) {
  for (std::int64_t j = 0; j < choices; ++j) {
    float best = -std::numeric_limits<float>::infinity();
    std::int32_t winner = -1;
    for (std::int32_t e = 0; e < experts; ++e) {
      if (std::find(chosen, chosen + j, e) != chosen + j) continue;
      const float score = logits[e] + (bias != nullptr ? bias[e] : 0.0f);
      if (winner < 0 || score > best) {
        best = score;
        winner = e;
      }
    }
    chosen[j] = winner;
  }
}

void softmax_chosen(const float* logits, const std::int32_t* chosen, std::int64_t choices, float* weight) {
  float highest = logits[chosen[0]];
  for (std::int64_t j = 1; j < choices; ++j) highest = std::max(highest, logits[chosen[j]]);
  float sum = 0;
  for (std::int64_t j = 0; j < choices; ++j) sum += weight[j] = std::exp(logits[chosen[j]] - highest);
  for (std::int64_t j = 0; j < choices; ++j) weight[j] /= sum;
}

// Sorts the (token, choice) pairs by expert, tokens in order, and drops what exceeds an expert's capacity.
void sort_by_expert(Routing& routing, std::int64_t tokens, std::int64_t choices, std::int64_t experts,
                    std::int64_t capacity) {
  const std::int32_t* chosen = ints(routing.chosen);
  routing.counts.assign(static_cast<std::size_t>(experts), 0);
  for (std::int64_t i = 0; i < tokens * choices; ++i) ++routing.counts[static_cast<std::size_t>(chosen[i])];
  routing.first.assign(1, 0);
  for (const std::int64_t count : routing.counts)
    routing.first.push_back(routing.first.back() + std::min(count, capacity));

  routing.position = make_ints({tokens, choices});
  routing.token = make_ints({routing.rows()});
  routing.row_weight = make_floats({routing.rows()});
  std::vector<std::int64_t> next(routing.first.begin(), routing.first.end() - 1);
  for (std::int64_t i = 0; i < tokens * choices; ++i) {
    const auto expert = static_cast<std::size_t>(chosen[i]);
    const bool fits = next[expert] < routing.first[expert + 1];
    ints(routing.position)[i] = fits ? static_cast<std::int32_t>(next[expert]) : -1;
    if (!fits) continue;
    ints(routing.token)[next[expert]] = static_cast<std::int32_t>(i / choices);
    floats(routing.row_weight)[next[expert]++] = floats(routing.weight)[i];
  }
}

void measure_losses(Routing& routing, std::int64_t tokens, std::int64_t choices, std::int64_t experts) {
  std::vector<double> mean(static_cast<std::size_t>(experts), 0.0);
  double squares = 0;
  for (std::int64_t n = 0; n < tokens; ++n) {
    for (std::int64_t e = 0; e < experts; ++e) {
      mean[static_cast<std::size_t>(e)] += floats(routing.probability)[n * experts + e];
    }
    squares += double{floats(routing.log_sum)[n]} * floats(routing.log_sum)[n];
  }
  const auto n = static_cast<double>(tokens);
  double sum = 0;
  for (std::size_t e = 0; e < mean.size(); ++e) {
    sum += static_cast<double>(routing.counts[e]) / (n * static_cast<double>(choices)) * mean[e] / n;
  }
  routing.balance = static_cast<double>(experts) * sum;
  routing.z = squares / n;
}

}  // namespace

Routing route(const Backend& backend, const at::Tensor& x, const Weight& weight, const float* bias,
              std::int64_t choices, float capacity_factor) {
  const std::int64_t tokens = x.size(0);
  const std::int64_t experts = weight.value.size(0);
  Routing routing;
  routing.probability = make_floats({tokens, experts});
  routing.log_sum = make_floats({tokens});
  routing.chosen = make_ints({tokens, choices});
  routing.weight = make_floats({tokens, choices});
  multiply_transposed(backend, routing.probability, x, weight);
#pragma omp parallel for schedule(static) if (tokens > least_parallel_tokens)
  for (std::int64_t n = 0; n < tokens; ++n) {
    float* logits = floats(routing.probability) + n * experts;
    std::int32_t* chosen = ints(routing.chosen) + n * choices;
    choose(logits, bias, experts, choices, chosen);
    softmax_chosen(logits, chosen, choices, floats(routing.weight) + n * choices);
    floats(routing.log_sum)[n] = softmax_row(logits, experts);
  }
  std::int64_t capacity = tokens;  // a token chooses an expert at most once, so this drops nothing
  if (capacity_factor > 0) {
    const double even =
        static_cast<double>(tokens) * static_cast<double>(choices) / static_cast<double>(experts);
    const double wanted = std::ceil(double{capacity_factor} * even);
    if (wanted < static_cast<double>(tokens)) capacity = static_cast<std::int64_t>(wanted);
  }
  sort_by_expert(routing, tokens, choices, experts, capacity);
  measure_losses(routing, tokens, choices, experts);
  return routing;
}

Routing route_all(std::int64_t tokens) {
  Routing routing;
  routing.chosen = make_ints({tokens, 1});
  routing.weight = make_floats({tokens, 1});
  routing.chosen.zero_();
  routing.weight.fill_(1.0);
  sort_by_expert(routing, tokens, 1, 1, tokens);
  return routing;
}

void route_backward(const Backend& backend, const Routing& routing, const compute::RouterOptions& options,
                    const at::Tensor& x, const Weight& weight, const float* gradient_row_weight,
                    at::Tensor& gradient_x, WeightGradients& gradients) {
  const std::int64_t tokens = x.size(0);
  const std::int64_t experts = weight.value.size(0);
  const std::int64_t choices = routing.chosen.size(1);
  const float balance = options.bias_gamma > 0 ? 0.0f : options.balance_coefficient;
  std::vector<float> pull(static_cast<std::size_t>(experts));  // d(balance · N) / d p_ne
  for (std::size_t e = 0; e < pull.size(); ++e) {
    pull[e] =
        balance * static_cast<float>(static_cast<double>(experts) * static_cast<double>(routing.counts[e]) /
                                     static_cast<double>(tokens * choices));
  }
  at::Tensor gradient_logits = make_floats({tokens, experts});
#pragma omp parallel for schedule(static) if (tokens > least_parallel_tokens)
  for (std::int64_t n = 0; n < tokens; ++n) {
    const float* p = floats(routing.probability) + n * experts;
    const float* w = floats(routing.weight) + n * choices;
    const std::int32_t* chosen = ints(routing.chosen) + n * choices;
    const std::int32_t* position = ints(routing.position) + n * choices;
    float* gradient = floats(gradient_logits) + n * experts;
    float mean_pull = 0;
    for (std::int64_t e = 0; e < experts; ++e) mean_pull += p[e] * pull[static_cast<std::size_t>(e)];
    const float z_pull = 2.0f * options.z_coefficient * floats(routing.log_sum)[n];
    for (std::int64_t e = 0; e < experts; ++e) {
      gradient[e] = p[e] * (pull[static_cast<std::size_t>(e)] - mean_pull + z_pull);
    }
    float mean_weight = 0;
    for (std::int64_t j = 0; j < choices; ++j) {
      if (position[j] >= 0) mean_weight += w[j] * gradient_row_weight[position[j]];
    }
    for (std::int64_t j = 0; j < choices; ++j) {
      const float upstream = position[j] >= 0 ? gradient_row_weight[position[j]] : 0.0f;
      gradient[chosen[j]] += w[j] * (upstream - mean_weight);
    }
  }
  at::Tensor through = make_floats({tokens, x.size(1)});
  const at::Tensor rounded = narrowed(*backend.kernels, gradient_logits);
  multiply(backend, through, rounded, weight);
  gradient_x.add_(through);
  add_outer(backend, weight, rounded, x, gradients);
}

}  // namespace neuroshard::model
