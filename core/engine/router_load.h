// How a router shares its tokens out: an exponential mean over about twenty steps, for the screens that show
// it.
#pragma once

#include <cstdint>
#include <vector>

#include "core/base/span.h"
#include "core/compute/model_shape.h"
#include "core/node/queries.h"

namespace neuroshard::engine {

// Threads: one.
class RouterLoad {
 public:
  explicit RouterLoad(const compute::ModelShape& shape) : shape_(shape) {}

  // Of one step: tokens by expert [layers · experts], layer-major, and the router's biases in the same order.
  void add(Span<const std::uint64_t> tokens, Span<const float> bias);
  // By layer, then expert; empty for a dense model. Shares are 0 until the first step.
  std::vector<node::ExpertLoad> view() const;

 private:
  const compute::ModelShape shape_;
  std::vector<double> share_;  // of the layer's assignments
  std::vector<std::uint64_t> tokens_;
  std::vector<float> bias_;
};

}  // namespace neuroshard::engine
