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
  at::Tensor sorted = make_activations(kernels, {routing.rows(), source.size(1)});
  kernels.gather_activations(raw(source), ints(routing.token), routing.rows(), source.size(1), raw(sorted));
  return sorted;
}

at::Tensor widened(const Kernels& kernels, const at::Tensor& values) {
  at::Tensor copy = make_floats(values.sizes());
  kernels.widen(raw(values), values.numel(), floats(copy));
  return copy;
}

// Calls visit(expert, its first sorted row, its rows) for each expert that has rows.
template <class Visit>
void for_each_expert(const Routing& routing, std::size_t experts, const Visit& visit) {
  for (std::size_t e = 0; e < experts; ++e) {
    const std::int64_t first = routing.first[e];
    const std::int64_t count = routing.first[e + 1] - first;
    if (count > 0) visit(e, first, count);
  }
}

void dense_forward(const Backend& backend, const MixtureWeights& weights, const at::Tensor& x,
                   at::Tensor& sum, MixtureState& state) {
  const Kernels& kernels = *backend.kernels;
  const ExpertWeights& expert = weights.experts.front();
  const at::Tensor activation = make_activations(kernels, {x.size(0), weights.width});
  state.gate_up = make_activations(kernels, {x.size(0), 2 * weights.width});
  multiply_transposed(backend, state.gate_up, x, expert.gate_up);
  kernels.swiglu_forward(raw(state.gate_up), x.size(0), weights.width, raw(activation));
  add_transposed(backend, sum, activation, expert.down);
}

void dense_backward(const Backend& backend, const MixtureWeights& weights, const at::Tensor& x,
                    const at::Tensor& gradient_sum, MixtureState& state, at::Tensor& gradient_x,
                    WeightGradients& gradients) {
  ExpertBackward pass{&weights.experts.front(),
                      x,
                      state.gate_up,
                      gradient_sum,
                      make_floats({x.size(0)}),
                      make_activations(*backend.kernels, {x.size(0), weights.width}),
                      gradient_x,
                      make_floats({x.size(0)})};
  pass.row_weight.fill_(1.0);
  experts_backward(backend, {pass}, gradients);
}

void remote_forward(const Kernels& kernels, const RemoteExperts& remote, std::size_t expert,
                    const at::Tensor& x, const at::Tensor& y) {
  const at::Tensor input = widened(kernels, x);
  const at::Tensor output = make_floats(y.sizes());
  check(remote.provider->forward(remote.call_of(expert), remote.layer, static_cast<std::uint32_t>(expert),
                                 static_cast<std::uint64_t>(x.size(0)), floats(input), floats(output)));
  kernels.narrow(floats(output), output.numel(), raw(y));
}

// The holder works without the router's weight: its gradient comes from the kept output, and the upstream
// gradient is scaled here.
void remote_backward(const Kernels& kernels, const RemoteExperts& remote, std::size_t expert,
                     const at::Tensor& output, const ExpertBackward& pass) {
  const std::int64_t rows = pass.gradient_y.size(0);
  const std::int64_t hidden = pass.gradient_y.size(1);
  const at::Tensor upstream = widened(kernels, pass.gradient_y);
  const at::Tensor gradient = make_floats(pass.gradient_y.sizes());
  kernels.dot_rows(floats(upstream), floats(widened(kernels, output)), rows, hidden,
                   floats(pass.gradient_row_weight));
  kernels.scale_rows(floats(upstream), floats(pass.row_weight), rows, hidden, floats(upstream));
  check(remote.provider->backward(remote.call_of(expert), remote.layer, static_cast<std::uint32_t>(expert),
                                  static_cast<std::uint64_t>(rows), floats(upstream), floats(gradient)));
  kernels.narrow(floats(gradient), gradient.numel(), raw(pass.gradient_x));
}

}  // namespace

ExpertWeights expert_weights(const Kernels& kernels, SlotState& slot) {
  const Weight gate_up = product_weight(kernels, slot, 0, 2);
  return {gate_up, product_weight(kernels, slot, 2)};
}

void experts_forward(const Backend& backend, const std::vector<ExpertForward>& passes) {
  std::vector<Product> in;
  std::vector<Product> out;
  for (const ExpertForward& pass : passes) {
    in.push_back({pass.gate_up, pass.x, &pass.weights->gate_up});
    out.push_back({pass.y, pass.activation, &pass.weights->down});
  }
  multiply_transposed(backend, in);
  for (const ExpertForward& pass : passes) {
    backend.kernels->swiglu_forward(raw(pass.gate_up), pass.x.size(0), pass.activation.size(1),
                                    raw(pass.activation));
  }
  multiply_transposed(backend, out);
}

void experts_backward(const Backend& backend, const std::vector<ExpertBackward>& passes,
                      WeightGradients& gradients) {
  std::vector<Product> in;
  std::vector<Product> out;
  std::vector<OuterProduct> outer;
  for (const ExpertBackward& pass : passes) {
    in.push_back({pass.activation, pass.gradient_y, &pass.weights->down});
    out.push_back({pass.gradient_x, pass.gate_up, &pass.weights->gate_up});
    outer.push_back({pass.weights->down.gradient, pass.gradient_y, pass.activation});
    outer.push_back({pass.weights->gate_up.gradient, pass.gate_up, pass.x});
  }
  multiply(backend, in);
  for (const ExpertBackward& pass : passes) {
    backend.kernels->swiglu_backward(raw(pass.gate_up), raw(pass.activation), floats(pass.row_weight),
                                     pass.x.size(0), pass.activation.size(1),
                                     floats(pass.gradient_row_weight));
  }
  add_outer(backend, std::move(outer), gradients);
  multiply(backend, out);
}

void mixture_forward(const Backend& backend, const MixtureWeights& weights, const RemoteExperts& remote,
                     float capacity_factor, const at::Tensor& x, at::Tensor& sum, MixtureState& state) {
  if (weights.dense() && weights.experts.front().held())
    return dense_forward(backend, weights, x, sum, state);
  const Kernels& kernels = *backend.kernels;
  const std::int64_t hidden = x.size(1);
  state.routing = weights.dense()
                      ? route_all(x.size(0))
                      : route(backend, x, weights.router, weights.bias, weights.choices, capacity_factor);
  const Routing& routing = state.routing;
  const at::Tensor sorted = gather(kernels, x, routing);
  const at::Tensor output = make_activations(kernels, {routing.rows(), hidden});
  const at::Tensor activation = make_activations(kernels, {routing.rows(), weights.width});
  state.gate_up = make_activations(kernels, {routing.rows(), 2 * weights.width});
  std::vector<ExpertForward> passes;
  for_each_expert(
      routing, weights.experts.size(), [&](std::size_t e, std::int64_t first, std::int64_t count) {
        const auto part = [&](const at::Tensor& tensor) { return rows_of(tensor, first, count); };
        if (weights.experts[e].held()) {
          passes.push_back(
              {&weights.experts[e], part(sorted), part(state.gate_up), part(activation), part(output)});
        } else {
          remote_forward(kernels, remote, e, part(sorted), part(output));
        }
      });
  experts_forward(backend, passes);
  kernels.combine_rows(raw(output), ints(routing.position), floats(routing.weight), routing.chosen.size(1),
                       x.size(0), hidden, floats(sum));
  if (any_remote(weights)) state.output = output;
}

void mixture_backward(const Backend& backend, const MixtureWeights& weights, const RemoteExperts& remote,
                      const compute::RouterOptions& options, const at::Tensor& x,
                      const at::Tensor& gradient_sum, MixtureState& state, at::Tensor& gradient_x,
                      WeightGradients& gradients) {
  if (weights.dense() && weights.experts.front().held()) {
    return dense_backward(backend, weights, x, gradient_sum, state, gradient_x, gradients);
  }
  const Kernels& kernels = *backend.kernels;
  const Routing& routing = state.routing;
  const std::int64_t hidden = x.size(1);
  const at::Tensor gradient_y = gather(kernels, gradient_sum, routing);
  const at::Tensor gradient_sorted = make_activations(kernels, {routing.rows(), hidden});
  const at::Tensor gradient_row_weight = make_floats({routing.rows()});
  {
    const at::Tensor sorted = gather(kernels, x, routing);
    const at::Tensor activation = make_activations(kernels, {routing.rows(), weights.width});
    std::vector<ExpertBackward> passes;
    for_each_expert(
        routing, weights.experts.size(), [&](std::size_t e, std::int64_t first, std::int64_t count) {
          const auto part = [&](const at::Tensor& tensor) { return rows_of(tensor, first, count); };
          const ExpertBackward pass{
              &weights.experts[e],      part(sorted),     part(state.gate_up),   part(gradient_y),
              part(routing.row_weight), part(activation), part(gradient_sorted), part(gradient_row_weight)};
          if (weights.experts[e].held()) {
            passes.push_back(pass);
          } else {
            remote_backward(kernels, remote, e, part(state.output), pass);
          }
        });
    experts_backward(backend, passes, gradients);
  }
  gradient_x.zero_();
  kernels.combine_rows(raw(gradient_sorted), ints(routing.position), nullptr, routing.chosen.size(1),
                       x.size(0), hidden, floats(gradient_x));
  if (weights.dense()) return;
  route_backward(backend, routing, options, x, weights.router, floats(gradient_row_weight), gradient_x,
                 gradients);
}

}  // namespace neuroshard::model
