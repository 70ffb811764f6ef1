// Our own models as computation graphs, from the shape alone: nodes are what core/model computes, parameters
// are those of the slots (core/compute/slot.h), to the byte.
//
// Operations: two per parameter of a product and token, and the attention's two products over half of the
// positions on average (causal), as `neuroshardd bench` counts them; elementwise work shows in the bytes.
// Experts: each token reaches experts_per_token of them; routing is taken as even. An expert's input is
// its share of the tokens, through a node of its own beside the router ("dispatch"), which shares the block
// of the slot.
// Training: three times the operations and bytes of a forward pass, gradients and two moments beside the
// parameters, and each cut tensor crosses twice, the second time as its gradient. The state that the backward
// pass keeps of the activations is not in the memory of a block.
#pragma once

#include "core/compute/model_shape.h"
#include "core/partition/graph/machine_model.h"

namespace neuroshard::partition {

enum class ModelLevel : std::uint8_t {
  Layer,    // embed, one node per layer with its experts, head: a chain
  Slot,     // embed, per layer its slot and its experts, head
  Operator  // norms, products, attention, router
};

struct ModelGraphOptions {
  ModelLevel level = ModelLevel::Layer;
  std::uint32_t sequences = 1;  // per request, each of shape.sequence tokens
  bool training = false;
};

// InvalidArgument: a shape that compute::validate() refuses, no sequence, more nodes than max_nodes.
Expected<CostedGraph> model_graph(const compute::ModelShape& shape, const ModelGraphOptions& options);

}  // namespace neuroshard::partition
