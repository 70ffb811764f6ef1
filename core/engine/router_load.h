// The distribution of a router's tokens over its experts: an exponential mean over about twenty steps, for
// display.
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

  // Adds a step: tokens by expert [layers · experts], layer-major, and the router's biases in that order.
  void add(Span<const std::uint64_t> tokens, Span<const float> bias);
  // By layer, then expert; empty for a dense model. Shares are 0 until the first step.
  std::vector<node::ExpertLoad> view() const;

 private:
  const compute::ModelShape shape_;
  std::vector<double> share_;  // fraction of the layer's assignments
  std::vector<std::uint64_t> tokens_;
  std::vector<float> bias_;
};

}  // namespace neuroshard::engine
