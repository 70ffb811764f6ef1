// Contractions that keep at least one optimal partition, whatever the bottleneck, when memory is no limit.
//
// For a node v without work and parameters:
//  (a) One successor w, and v's inputs cost no more than its outputs: v moves into w's block. v's old block
//      stops sending v's outputs and may start to send v's inputs; w's block receives those instead. Neither
//      cost grows, and v moves to a later block, where its inputs are ready.
//  (b) One predecessor u, and v's outputs cost no more than those outputs of u that only v reads: v moves
//  into
//      u's block, which sends v's outputs instead of those; v's old block receives the former instead of the
//      latter; who else reads v receives the same as before.
// Each step preserves an optimum of the graph before it, so a sequence of steps does.
#pragma once

#include "core/placement/tensor_graph.h"

namespace neuroshard::placement {

// The grouping after as many steps as apply.
Grouping reduce_free_nodes(const TensorGraph& graph);

}  // namespace neuroshard::placement
