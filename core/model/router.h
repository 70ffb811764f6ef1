// The router of a mixture layer: which k of the E experts a token goes to, with which weights, and the two
// losses that keep it balanced.
//   logits = x·Wᵀ;  chosen = the k largest of logits + bias (ties: the lower index);  weight = softmax over
//   the chosen logits (Mixtral);  p = softmax over all logits balance = E · Σ_e f_e·P_e,  f_e = count_e /
//   (k·N),  P_e = mean p_e   (Fedus et al. 2021 with counts divided by k, so
//             that its minimum is exactly 1)
//   z = mean (log Σ exp logits)²   (Zoph et al. 2022)
// In the gradient each layer adds coefficient · N · loss: sums over tokens, as everywhere. f is a constant
// there. bias is selection-only balancing (Wang et al. 2024): it never touches the weights, and replaces the
// balance loss.
//
// Legend: N tokens, E experts, k choices, M = N·k minus what exceeds the capacity.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "core/compute/model_shape.h"
#include "core/model/backend.h"
#include "core/model/kernels.h"
#include "core/model/slot_state.h"
#include "core/model/weight_gradients.h"

namespace neuroshard::model {

struct Routing {
  at::Tensor probability;            // [N,E] fp32
  at::Tensor log_sum;                // [N]
  at::Tensor chosen;                 // [N,k] int32
  at::Tensor weight;                 // [N,k] fp32
  at::Tensor position;               // [N,k] int32: row among the sorted ones, −1 = dropped by the capacity
  at::Tensor token;                  // [M] int32: the token of each sorted row
  at::Tensor row_weight;             // [M] fp32: its weight
  std::vector<std::int64_t> first;   // [E+1]: sorted rows of expert e are first[e] .. first[e+1]
  std::vector<std::int64_t> counts;  // [E]: tokens that chose e, dropped or not
  double balance = 0;
  double z = 0;

  std::int64_t rows() const { return first.back(); }
};

// x [N,H] activations, weight [E,H]; bias [E] or null. capacity_factor 0 = dropless. Throws OutOfMemory.
Routing route(const Backend& backend, const at::Tensor& x, const Weight& weight, const float* bias,
              std::int64_t choices, float capacity_factor);

// A dense model's routing: every token to expert 0 with weight 1; for the case that this expert is held
// elsewhere.
Routing route_all(std::int64_t tokens);

// Adds to gradient_x [N,H], fp32, and to the weight's gradient. An addition that is kept reads x.
// gradient_row_weight [M]: gradient of each sorted row's weight.
void route_backward(const Backend& backend, const Routing& routing, const compute::RouterOptions& options,
                    const at::Tensor& x, const Weight& weight, const float* gradient_row_weight,
                    at::Tensor& gradient_x, WeightGradients& gradients);

}  // namespace neuroshard::model
