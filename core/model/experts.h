// SwiGLU experts (Shazeer 2020; Jiang et al. 2024) and their mixture.
//   expert(x) = (silu(x·Gᵀ) ∘ (x·Uᵀ))·Dᵀ        mixture(x) = Σ over the chosen experts of weight · expert(x)
// A dense model is one expert without router. Tokens are sorted by expert once, then each expert is one
// product over the rows that chose it.
//
// Legend: N tokens, H hidden, F width of an expert, M sorted rows (router.h; N when dense), m rows of one
// expert.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <stdexcept>
#include <vector>

#include "core/compute/stage.h"
#include "core/model/backend.h"
#include "core/model/router.h"
#include "core/model/slot_state.h"
#include "core/model/weight_gradients.h"

namespace neuroshard::model {

struct ExpertWeights {
  Weight gate_up;  // [2F,H], gate first
  Weight down;     // [H,F]
  bool held() const { return down.value.defined(); }
};
ExpertWeights expert_weights(const Kernels& kernels, SlotState& slot);

// All are activations, but y and gradient_x may be fp32.
struct ExpertForward {
  const ExpertWeights* weights = nullptr;
  at::Tensor x;           // [m,H]
  at::Tensor gate_up;     // [m,2F], overwritten; kept for the backward pass
  at::Tensor activation;  // [m,F] scratch
  at::Tensor y;           // [m,H], overwritten
};
// Several experts over their rows, in one parallel loop per product where the precision allows.
void experts_forward(const Backend& backend, const std::vector<ExpertForward>& passes);

struct ExpertBackward {
  const ExpertWeights* weights = nullptr;
  at::Tensor x;                    // [m,H]
  at::Tensor gate_up;              // [m,2F], destroyed
  at::Tensor gradient_y;           // [m,H], of weight · y with respect to y, without the weight
  at::Tensor row_weight;           // [m] fp32
  at::Tensor activation;           // [m,F] scratch
  at::Tensor gradient_x;           // [m,H], overwritten
  at::Tensor gradient_row_weight;  // [m] fp32, overwritten
};
// Adds to the gradients of the weights. Additions that are kept read the tensors of the passes, except gradient_x.
void experts_backward(const Backend& backend, const std::vector<ExpertBackward>& passes,
                      WeightGradients& gradients);

// A provider's failure on its way to the boundary.
class ProviderFailure : public std::runtime_error {
 public:
  explicit ProviderFailure(const compute::Status& status)
      : std::runtime_error(status.message), status_(status) {}
  const compute::Status& status() const { return status_; }

 private:
  compute::Status status_;
};

// Where the experts come from that are not held here.
struct RemoteExperts {
  compute::ExpertProvider* provider = nullptr;
  std::uint64_t first_call = compute::call_without_backward;  // call of expert 0; expert e has first_call + e
  std::uint32_t layer = 0;

  std::uint64_t call_of(std::size_t expert) const {
    return first_call == compute::call_without_backward ? first_call : first_call + expert;
  }
};

struct MixtureWeights {
  Weight router;  // [E,H]; undefined in a dense model
  std::vector<ExpertWeights> experts;
  const float* bias = nullptr;  // [E], see router.h
  std::int64_t choices = 1;
  std::int64_t width = 0;  // F
  bool dense() const { return !router.value.defined(); }
};

// State that the forward pass keeps for the backward pass.
struct MixtureState {
  Routing routing;     // empty in a dense model
  at::Tensor gate_up;  // [M,2F]; rows of remote experts are unused
  at::Tensor output;   // [M,H]; only with remote experts, whose outputs can't be made again
};

// x [N,H] activations; sum [N,H], fp32, adds mixture(x). `state` may be reused only after its backward pass.
// Throws OutOfMemory, ProviderFailure.
void mixture_forward(const Backend& backend, const MixtureWeights& weights, const RemoteExperts& remote,
                     float capacity_factor, const at::Tensor& x, at::Tensor& sum, MixtureState& state);

// gradient_sum [N,H] activations; gradient_x [N,H], fp32, is overwritten; the gradients of the weights are
// added to, router losses included. Additions that are kept read x and gradient_sum. Remote experts
// are asked at once: their holder adds to its own gradients then.
void mixture_backward(const Backend& backend, const MixtureWeights& weights, const RemoteExperts& remote,
                      const compute::RouterOptions& options, const at::Tensor& x,
                      const at::Tensor& gradient_sum, MixtureState& state, at::Tensor& gradient_x,
                      WeightGradients& gradients);

}  // namespace neuroshard::model
