#include "core/model/experts.h"

#include "core/model/products.h"
#include "core/model/tensors.h"

namespace neuroshard::model {
namespace {

void check(const compute::Status& status) {
  if (!status.ok()) throw ProviderFailure(status);
}

bool any_remote(const MixtureWeights& weights) {
  for (const ExpertWeights& expert : weights.experts) {
    if (!expert.held()) return true;
  }
  return false;
}

at::Tensor gather(const Kernels& kernels, const at::Tensor& source, const Routing& routing) {
  at::Tensor sorted = make_floats({routing.rows(), source.size(1)});
  kernels.gather_rows(floats(source), ints(routing.token), routing.rows(), source.size(1), floats(sorted));
  return sorted;
}

void dense_forward(const Kernels& kernels, const MixtureWeights& weights, const at::Tensor& x,
                   at::Tensor& sum, MixtureState& state) {
  const ExpertWeights& expert = weights.experts.front();
  const at::Tensor activation = make_floats({x.size(0), weights.width});
  state.gate_up = make_floats({x.size(0), 2 * weights.width});
  multiply_transposed(state.gate_up, x, expert.gate_up.value);
  kernels.swiglu_forward(floats(state.gate_up), x.size(0), weights.width, floats(activation));
  multiply_transposed_plus(sum, sum, activation, expert.down.value);
}

void dense_backward(const Kernels& kernels, const MixtureWeights& weights, const at::Tensor& x,
                    const at::Tensor& gradient_sum, MixtureState& state, at::Tensor& gradient_x) {
  ExpertBackward pass{x,
                      state.gate_up,
                      gradient_sum,
                      make_floats({x.size(0)}),
                      make_floats({x.size(0), weights.width}),
                      gradient_x,
                      make_floats({x.size(0)})};
  pass.row_weight.fill_(1.0);
  expert_backward(kernels, weights.experts.front(), pass);
}

}  // namespace

ExpertWeights expert_weights(const SlotState& slot) {
  return {weight_of(slot, 0, 2), weight_of(slot, 2)};
}

void expert_forward(const Kernels& kernels, const ExpertWeights& weights, const at::Tensor& x,
                    at::Tensor& gate_up, at::Tensor& activation, at::Tensor& y) {
  multiply_transposed(gate_up, x, weights.gate_up.value);
  kernels.swiglu_forward(floats(gate_up), x.size(0), activation.size(1), floats(activation));
  multiply_transposed(y, activation, weights.down.value);
}

void expert_backward(const Kernels& kernels, const ExpertWeights& weights, ExpertBackward& pass) {
  multiply(pass.activation, pass.gradient_y, weights.down.value);
  kernels.swiglu_backward(floats(pass.gate_up), floats(pass.activation), floats(pass.row_weight),
                          pass.x.size(0), pass.activation.size(1), floats(pass.gradient_row_weight));
  at::Tensor down_gradient = weights.down.gradient;
  at::Tensor gate_up_gradient = weights.gate_up.gradient;
  add_outer(down_gradient, pass.gradient_y, pass.activation);
  add_outer(gate_up_gradient, pass.gate_up, pass.x);
  multiply(pass.gradient_x, pass.gate_up, weights.gate_up.value);
}

void mixture_forward(const Kernels& kernels, const MixtureWeights& weights, const RemoteExperts& remote,
                     float capacity_factor, const at::Tensor& x, at::Tensor& sum, MixtureState& state) {
  if (weights.dense() && weights.experts.front().held())
    return dense_forward(kernels, weights, x, sum, state);
  const std::int64_t hidden = x.size(1);
  state.routing = weights.dense()
                      ? route_all(x.size(0))
                      : route(x, weights.router.value, weights.bias, weights.choices, capacity_factor);
  const Routing& routing = state.routing;
  const at::Tensor sorted = gather(kernels, x, routing);
  const at::Tensor output = make_floats({routing.rows(), hidden});
  const at::Tensor activation = make_floats({routing.rows(), weights.width});
  state.gate_up = make_floats({routing.rows(), 2 * weights.width});
  for (std::size_t e = 0; e < weights.experts.size(); ++e) {
    const std::int64_t first = routing.first[e];
    const std::int64_t count = routing.first[e + 1] - first;
    if (count == 0) continue;
    if (weights.experts[e].held()) {
      at::Tensor gate_up = rows_of(state.gate_up, first, count);
      at::Tensor scratch = rows_of(activation, first, count);
      at::Tensor y = rows_of(output, first, count);
      expert_forward(kernels, weights.experts[e], rows_of(sorted, first, count), gate_up, scratch, y);
    } else {
      check(remote.provider->forward(remote.call_of(e), remote.layer, static_cast<std::uint32_t>(e),
                                     static_cast<std::uint64_t>(count), floats(sorted) + first * hidden,
                                     floats(output) + first * hidden));
    }
  }
  kernels.combine_rows(floats(output), ints(routing.position), floats(routing.weight), routing.chosen.size(1),
                       x.size(0), hidden, floats(sum));
  if (any_remote(weights)) state.output = output;
}

void mixture_backward(const Kernels& kernels, const MixtureWeights& weights, const RemoteExperts& remote,
                      const compute::RouterOptions& options, const at::Tensor& x,
                      const at::Tensor& gradient_sum, MixtureState& state, at::Tensor& gradient_x) {
  if (weights.dense() && weights.experts.front().held()) {
    return dense_backward(kernels, weights, x, gradient_sum, state, gradient_x);
  }
  const Routing& routing = state.routing;
  const std::int64_t hidden = x.size(1);
  const at::Tensor gradient_y = gather(kernels, gradient_sum, routing);
  const at::Tensor gradient_sorted = make_floats({routing.rows(), hidden});
  const at::Tensor gradient_row_weight = make_floats({routing.rows()});
  {
    const at::Tensor sorted = gather(kernels, x, routing);
    const at::Tensor activation = make_floats({routing.rows(), weights.width});
    for (std::size_t e = 0; e < weights.experts.size(); ++e) {
      const std::int64_t first = routing.first[e];
      const std::int64_t count = routing.first[e + 1] - first;
      if (count == 0) continue;
      const auto part = [&](const at::Tensor& tensor) { return rows_of(tensor, first, count); };
      ExpertBackward pass{
          part(sorted),     part(state.gate_up),   part(gradient_y),         part(routing.row_weight),
          part(activation), part(gradient_sorted), part(gradient_row_weight)};
      if (weights.experts[e].held()) {
        expert_backward(kernels, weights.experts[e], pass);
        continue;
      }
      float* upstream = floats(pass.gradient_y);
      kernels.dot_rows(upstream, floats(state.output) + first * hidden, count, hidden,
                       floats(pass.gradient_row_weight));
      kernels.scale_rows(upstream, floats(pass.row_weight), count, hidden, upstream);
      check(remote.provider->backward(remote.call_of(e), remote.layer, static_cast<std::uint32_t>(e),
                                      static_cast<std::uint64_t>(count), upstream, floats(pass.gradient_x)));
    }
  }
  gradient_x.zero_();
  kernels.combine_rows(floats(gradient_sorted), ints(routing.position), nullptr, routing.chosen.size(1),
                       x.size(0), hidden, floats(gradient_x));
  if (weights.dense()) return;
  at::Tensor router_gradient = weights.router.gradient;
  route_backward(routing, options, x, weights.router.value, floats(gradient_row_weight), gradient_x,
                 router_gradient);
}

}  // namespace neuroshard::model
