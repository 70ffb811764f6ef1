#include "core/partition/search/chain.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/partition/search/slicing.h"

namespace neuroshard::partition {

Expected<ChainPlan> plan_chain(const ComputationGraph& graph, const std::vector<std::uint32_t>& order,
                               const std::vector<Peer>& peers) {
  NS_ASSIGN_OR_RETURN(const Problem problem, make_pipeline_problem(graph, peers));
  std::vector<std::uint32_t> place(graph.nodes.size(), ~std::uint32_t{0});
  for (std::uint32_t i = 0; i < order.size(); ++i) {
    if (order[i] >= place.size() || place[order[i]] != ~std::uint32_t{0}) {
      return make_error(ErrorCode::InvalidArgument, "the order does not name every node once");
    }
    place[order[i]] = i;
  }
  for (const GraphNode& node : graph.nodes) {
    const std::uint32_t own = place[static_cast<std::size_t>(&node - graph.nodes.data())];
    const bool later = std::any_of(node.inputs.begin(), node.inputs.end(),
                                   [&](std::uint32_t u) { return !(place[u] < own); });
    if (own == ~std::uint32_t{0} || later) {
      return make_error(ErrorCode::InvalidArgument,
                        fmt::format("node \"{}\" comes before its inputs in the order", node.id));
    }
  }
  Slicer slicer(problem.graph, problem.devices);
  const Slicing slicing = slicer.slice(order, unlimited);
  if (slicing.bottleneck == unlimited) {
    return make_error(ErrorCode::NotFound,
                      "no cut of the chain fits the peers' memory; give more peers or more memory");
  }
  ChainPlan plan;
  SegmentSweep sweep(problem.graph);
  sweep.set_order(order);
  std::uint32_t first = 0;
  for (std::size_t b = 0; b < slicing.ends.size(); ++b) {
    sweep.start(first);
    SegmentCost cost;
    for (std::uint32_t i = first; i < slicing.ends[b]; ++i) cost = sweep.grow();
    const std::uint32_t peer = slicing.device[b];
    plan.blocks.push_back(
        {peer, first, slicing.ends[b] - first,
         problem.devices[peer].block_cost(cost.work, cost.in + cost.out, cost.params, cost.peak)});
    first = slicing.ends[b];
    plan.bottleneck = std::max(plan.bottleneck, plan.blocks.back().cost);
  }
  return plan;
}

}  // namespace neuroshard::partition
