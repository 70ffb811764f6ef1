#include "core/partition/search/slicing.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

namespace neuroshard::partition {
namespace {

// Segments times devices between two questions whether to stop: some milliseconds.
constexpr std::size_t steps_per_question = 1'000'000;

}  // namespace

SegmentSweep::SegmentSweep(const TensorGraph& graph)
    : graph_(graph), position_(graph.size()), last_use_(graph.tensors.size()), seen_(graph.tensors.size()) {}

void SegmentSweep::set_order(const std::vector<NodeIndex>& order) {
  order_ = &order;
  for (std::uint32_t i = 0; i < order.size(); ++i) position_[order[i]] = i;
  for (TensorIndex t = 0; t < graph_.tensors.size(); ++t) {
    last_use_[t] = 0;
    for (const NodeIndex c : graph_.tensors[t].consumers) last_use_[t] = std::max(last_use_[t], position_[c]);
  }
}

void SegmentSweep::start(std::size_t at) {
  start_ = end_ = at;
  alive_ = 0;
  cost_ = {};
  if (++stamp_ == 0) {
    std::fill(seen_.begin(), seen_.end(), 0);
    stamp_ = 1;
  }
}

const SegmentCost& SegmentSweep::grow() {
  const NodeIndex v = (*order_)[end_];
  cost_.work += graph_.work[v];
  cost_.params += graph_.params[v];
  double dies = 0;
  for (const TensorIndex t : graph_.produced[v]) {
    cost_.out += graph_.tensors[t].cost;
    alive_ += graph_.tensors[t].bytes;
  }
  for (const TensorIndex t : graph_.consumed[v]) {
    const Tensor& tensor = graph_.tensors[t];
    const bool last = last_use_[t] == end_;
    if (position_[tensor.producer] < start_) {
      if (seen_[t] != stamp_) {
        seen_[t] = stamp_;
        cost_.in += tensor.cost;
        alive_ += tensor.bytes;
      }
    } else if (last) {
      cost_.out -= tensor.cost;
    }
    if (last) dies += tensor.bytes;
  }
  cost_.peak = std::max(cost_.peak, alive_ + graph_.scratch[v]);
  alive_ -= dies;
  ++end_;
  return cost_;
}

Slicer::Slicer(const TensorGraph& graph, const std::vector<Device>& devices, std::function<bool()> stop)
    : devices_(devices),
      stop_(std::move(stop)),
      equal_(
          std::all_of(devices.begin(), devices.end(), [&](const Device& d) { return d == devices.front(); })),
      cheapest_work_(best_of(devices).work_factor),
      total_work_(graph.total_work()),
      sweep_(graph) {}

Slicing Slicer::slice(const std::vector<NodeIndex>& order, double cap) {
  std::vector<std::uint32_t> all(devices_.size());
  std::iota(all.begin(), all.end(), 0);
  return slice(order, all, cap);
}

// Each device in turn gets its share of the work, or of the nodes where none has work: a slicing at once, so
// that the search need not look at segments that no good one has.
Slicing Slicer::even_shares(const std::vector<std::uint32_t>& devices, std::size_t n) {
  double speed = 0;
  for (const std::uint32_t d : devices) speed += 1 / devices_[d].work_factor;
  const bool by_work = total_work_ > 0;
  const double time = (by_work ? total_work_ : static_cast<double>(n)) / speed;
  Slicing shares;
  shares.bottleneck = 0;
  std::size_t i = 0;
  for (std::size_t b = 0; b < devices.size() && i < n; ++b) {
    const Device& device = devices_[devices[b]];
    sweep_.start(i);
    SegmentCost cost;
    double share = 0;
    const bool last = b + 1 == devices.size();
    do {
      cost = sweep_.grow();
      share = by_work ? cost.work : share + 1;
      ++i;
    } while (i < n && (last || share * device.work_factor < time));
    const double f = device.block_cost(cost.work, cost.in + cost.out, cost.params, cost.peak);
    shares.bottleneck = std::max(shares.bottleneck, f);
    shares.ends.push_back(static_cast<std::uint32_t>(i));
    shares.device.push_back(devices[b]);
  }
  return shares.bottleneck < unlimited ? shares : Slicing{};
}

// best_[j * (k + 1) + b]: the first b devices do order[0..j).
Slicing Slicer::slice(const std::vector<NodeIndex>& order, const std::vector<std::uint32_t>& devices,
                      double cap) {
  const std::size_t n = order.size(), k = devices.size(), stride = k + 1;
  best_.assign((n + 1) * stride, unlimited);
  from_.assign((n + 1) * stride, 0);
  for (std::size_t b = 0; b <= k; ++b) best_[b] = 0;
  sweep_.set_order(order);
  Slicing shares = even_shares(devices, n);
  const bool shares_count = shares.bottleneck < cap;
  cap = std::min(cap, std::nextafter(shares.bottleneck * (1 + 1e-12), unlimited));
  std::size_t steps = 0;
  for (std::size_t i = 0; i < n; ++i) {
    if (steps >= steps_per_question) {
      steps = 0;
      if (stop_ && stop_()) return shares_count ? std::move(shares) : Slicing{};
    }
    const double* here = &best_[i * stride];
    // A device may be left out.
    for (std::size_t b = 1; b <= k && i > 0; ++b) {
      if (best_[i * stride + b - 1] <= best_[i * stride + b]) {
        best_[i * stride + b] = best_[i * stride + b - 1];
        from_[i * stride + b] = static_cast<std::uint32_t>(i);
      }
    }
    if (!(here[k] < cap)) continue;
    sweep_.start(i);
    for (std::size_t j = i + 1; j <= n; ++j) {
      const SegmentCost& cost = sweep_.grow();
      if (!(cost.work * cheapest_work_ < cap)) break;
      steps += k;
      double* there = &best_[j * stride];
      std::uint32_t* from = &from_[j * stride];
      double f = equal_ ? devices_[0].block_cost(cost.work, cost.in + cost.out, cost.params, cost.peak) : 0;
      for (std::size_t b = 1; b <= k; ++b) {
        if (!equal_) {
          f = devices_[devices[b - 1]].block_cost(cost.work, cost.in + cost.out, cost.params, cost.peak);
        }
        const double value = std::max(here[b - 1], f);
        if (value < there[b] && value < cap) {
          there[b] = value;
          from[b] = static_cast<std::uint32_t>(i);
        }
      }
    }
  }
  return read_best(devices, n, cap);
}

Slicing Slicer::read_best(const std::vector<std::uint32_t>& devices, std::size_t n, double cap) const {
  const std::size_t k = devices.size(), stride = k + 1;
  Slicing result;
  // Devices behind the last block are left out as well; with unequal ones more of them may be worse.
  const auto last = best_.begin() + static_cast<std::ptrdiff_t>(n * stride);
  std::size_t j = n, b = static_cast<std::size_t>(
                         std::min_element(last + 1, last + 1 + static_cast<std::ptrdiff_t>(k)) - last);
  result.bottleneck = best_[n * stride + b];
  if (!(result.bottleneck < cap)) return {};
  for (; j > 0; --b) {
    const std::size_t i = from_[j * stride + b];
    if (i < j) {
      result.ends.push_back(static_cast<std::uint32_t>(j));
      result.device.push_back(devices[b - 1]);
    }
    j = i;
  }
  std::reverse(result.ends.begin(), result.ends.end());
  std::reverse(result.device.begin(), result.device.end());
  return result;
}

}  // namespace neuroshard::partition
