// Cutting a topological order into blocks: contiguous segments, so the quotient is acyclic by construction.
//
//   best[b][j] = min over i of max(best[b−1][i], f(order[i..j)))
// Segment costs are swept, not stored: for a fixed start i the segment grows to the right and its four sums
// change by the new node's tensors only, so all costs of an order take O(n (n + m)), less where `cap` ends a
// sweep early. A tensor is alive from its production (or first use) in the segment to its last use anywhere
// in the order: then what is alive at a position does not depend on the segment's end, and the peak is a
// running maximum. An input that later blocks read as well is so counted to the end of the block: never less
// than the true peak.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "core/partition/graph/devices.h"
#include "core/partition/graph/tensor_graph.h"

namespace neuroshard::partition {

struct SegmentCost {
  double work = 0, in = 0, out = 0;  // io at factor 1
  double params = 0, peak = 0;       // bytes
};

// Costs of segments order[start..end) for a fixed start and growing end.  Threads: one.
class SegmentSweep {
 public:
  explicit SegmentSweep(const TensorGraph& graph);
  // A new order; every node once, producers before consumers.
  void set_order(const std::vector<NodeIndex>& order);
  void start(std::size_t at);
  // Adds the next node of the order; the sums of the segment so far.
  const SegmentCost& grow();

 private:
  const TensorGraph& graph_;
  const std::vector<NodeIndex>* order_ = nullptr;
  std::vector<std::uint32_t> position_, last_use_;  // per node, per tensor
  std::vector<std::uint32_t> seen_;                 // stamp per tensor
  std::uint32_t stamp_ = 0;
  std::size_t start_ = 0, end_ = 0;
  double alive_ = 0;
  SegmentCost cost_;
};

struct Slicing {
  double bottleneck = unlimited;      // unlimited: no slicing below the cap
  std::vector<std::uint32_t> ends;    // of each block, strictly rising; the last is n
  std::vector<std::uint32_t> device;  // of each block, strictly rising
};

// Slices one order after another for the same graph and devices. Devices stand in the order of the pipeline;
// some may be left out. Equal devices cost O(n · longest segment · k).  Threads: one.
//
// A graph without work has segments as long as itself, so a large one takes hours. `stop` is asked from time
// to time; once it says so, each device gets an even share of the order, if that is below the cap.
class Slicer {
 public:
  Slicer(const TensorGraph& graph, const std::vector<Device>& devices, std::function<bool()> stop = {});
  // The best slicing with bottleneck < cap.
  Slicing slice(const std::vector<NodeIndex>& order, double cap);
  // The same with the devices in another order: device[i] = position in `devices`.
  Slicing slice(const std::vector<NodeIndex>& order, const std::vector<std::uint32_t>& devices, double cap);

 private:
  Slicing even_shares(const std::vector<std::uint32_t>& devices, std::size_t n);
  Slicing read_best(const std::vector<std::uint32_t>& devices, std::size_t n, double cap) const;

  const std::vector<Device> devices_;
  const std::function<bool()> stop_;
  const bool equal_;
  double cheapest_work_ = 0, total_work_ = 0;
  SegmentSweep sweep_;
  std::vector<double> best_;
  std::vector<std::uint32_t> from_;
};

}  // namespace neuroshard::partition
