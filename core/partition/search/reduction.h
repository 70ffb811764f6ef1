// Contractions that keep at least one optimal partition, whatever the bottleneck, when memory is no limit.
//
// For a node v without parameters, whose work counts as much as a tensor cost of w (zero where it has none,
// else its time on the device that is slowest at it, over the cost factor of the same device):
//  (a) One successor s, and w + v's inputs cost no more than v's outputs: v moves into s's block. v's old
//      block stops sending v's outputs, may start to send v's inputs, and has less work; s's block receives the
//      inputs instead of the outputs and does the work. Neither cost grows, and v moves to a later block,
//      where its inputs are ready.
//  (b) One predecessor u, and w + v's outputs cost no more than those outputs of u that only v reads: v moves
//      into u's block, which sends v's outputs instead of those and does the work; v's old block receives the
//      former instead of the latter; other readers of v receive the same as before.
// Each step preserves an optimum of the graph before it, so any sequence of them does. Operators between
// large values (the inside of a gated feed-forward layer) thus become one node, and exact search reaches
// further.
#pragma once

#include <functional>
#include <vector>

#include "core/partition/graph/devices.h"
#include "core/partition/graph/tensor_graph.h"

namespace neuroshard::partition {

// The grouping after as many steps as apply, up to a bound on the work. `stop` is asked before each pass over
// the graph; the steps until then stand.
Grouping reduce_dominated(const TensorGraph& graph, const std::vector<Device>& devices,
                          const std::function<bool()>& stop);

}  // namespace neuroshard::partition
