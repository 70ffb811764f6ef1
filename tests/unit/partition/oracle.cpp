#include "tests/unit/partition/oracle.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <set>

#include "core/base/check.h"

namespace neuroshard::test {
namespace {

using partition::BlockReport;
using partition::ComputationGraph;
using partition::Peer;

constexpr double infinite = std::numeric_limits<double>::infinity();

std::vector<std::vector<std::uint32_t>> readers_of(const ComputationGraph& graph) {
  std::vector<std::vector<std::uint32_t>> readers(graph.nodes.size());
  for (std::uint32_t v = 0; v < graph.nodes.size(); ++v) {
    for (const std::uint32_t u : graph.nodes[v].inputs) readers[u].push_back(v);
  }
  return readers;
}

double transfer_time(const ComputationGraph& graph, const Peer& peer, std::uint32_t u) {
  if (graph.printed_transfers && peer.bandwidth == infinite) return graph.nodes[u].transfer;
  return graph.nodes[u].output_bytes / peer.bandwidth / graph.unit_seconds;
}

// Largest sum of tensors in memory while the block runs: a tensor from its production or first use in the
// block to its last use in the whole order, as far as the block goes.
double peak_bytes(const ComputationGraph& graph, const std::vector<std::uint32_t>& order,
                  const std::set<std::uint32_t>& block) {
  const auto readers = readers_of(graph);
  std::vector<std::size_t> place(order.size());
  for (std::size_t i = 0; i < order.size(); ++i) place[order[i]] = i;
  double most = 0;
  for (const std::uint32_t now : block) {
    double held = 0;
    for (std::uint32_t u = 0; u < graph.nodes.size(); ++u) {
      std::size_t first = order.size(), last = 0;
      if (block.contains(u)) first = last = place[u];
      for (const std::uint32_t r : readers[u]) {
        if (block.contains(r)) first = std::min(first, place[r]);
        last = std::max(last, place[r]);
      }
      if (first <= place[now] && place[now] <= last) held += graph.nodes[u].output_bytes;
    }
    most = std::max(most, held);
  }
  return most;
}

struct Parts {
  double work = 0, in = 0, out = 0, params = 0, overflow = 0, peak = 0;
  double total() const { return work + in + out + overflow; }
};

Parts parts_of(const ComputationGraph& graph, const Peer& peer, const std::vector<std::uint32_t>& order,
               const std::vector<std::uint32_t>& nodes) {
  const std::set<std::uint32_t> block(nodes.begin(), nodes.end());
  const auto readers = readers_of(graph);
  Parts parts;
  std::set<std::uint32_t> received;
  for (const std::uint32_t v : block) {
    parts.work += graph.nodes[v].work / peer.speed;
    parts.params += graph.nodes[v].param_bytes;
    for (const std::uint32_t u : graph.nodes[v].inputs) {
      if (!block.contains(u)) received.insert(u);
    }
    const bool sent = std::any_of(readers[v].begin(), readers[v].end(),
                                  [&](std::uint32_t r) { return !block.contains(r); });
    if (sent) parts.out += transfer_time(graph, peer, v);
  }
  for (const std::uint32_t u : received) parts.in += transfer_time(graph, peer, u);
  if (peer.memory == infinite) return parts;
  parts.peak = peak_bytes(graph, order, block);
  const double excess = std::max(0.0, parts.params + parts.peak - peer.memory);
  if (parts.peak > peer.memory || (excess > 0 && peer.stream_bandwidth == 0)) {
    parts.overflow = infinite;
  } else if (excess > 0) {
    parts.overflow = std::min(parts.params, excess) / peer.stream_bandwidth / graph.unit_seconds;
  }
  return parts;
}

void for_all_orders(const ComputationGraph& graph, std::vector<std::uint32_t>* order, std::uint32_t placed,
                    const std::function<void()>& visit) {
  if (order->size() == graph.nodes.size()) {
    visit();
    return;
  }
  for (std::uint32_t v = 0; v < graph.nodes.size(); ++v) {
    if ((placed >> v) & 1) continue;
    const auto& inputs = graph.nodes[v].inputs;
    if (!std::all_of(inputs.begin(), inputs.end(), [&](std::uint32_t u) { return (placed >> u) & 1; }))
      continue;
    order->push_back(v);
    for_all_orders(graph, order, placed | (1u << v), visit);
    order->pop_back();
  }
}

bool near(double a, double b) {
  return std::abs(a - b) <= 1e-9 * std::max({1.0, std::abs(a), std::abs(b)});
}

}  // namespace

double block_cost(const ComputationGraph& graph, const Peer& peer, const std::vector<std::uint32_t>& order,
                  const std::vector<std::uint32_t>& block) {
  return parts_of(graph, peer, order, block).total();
}

double best_bottleneck(const ComputationGraph& graph, const std::vector<Peer>& peers) {
  const std::size_t n = graph.nodes.size();
  NS_CHECK(n <= 12 && peers.size() <= 6);
  std::vector<std::uint32_t> ideals;
  for (std::uint32_t set = 0; set < (1u << n); ++set) {
    bool closed = true;
    for (std::uint32_t v = 0; v < n; ++v) {
      for (const std::uint32_t u : graph.nodes[v].inputs)
        closed = closed && (!((set >> v) & 1) || ((set >> u) & 1));
    }
    if (closed) ideals.push_back(set);
  }
  const bool equal = std::all_of(peers.begin(), peers.end(), [&](const Peer& p) {
    return p.speed == peers[0].speed && p.bandwidth == peers[0].bandwidth;
  });
  const std::uint32_t all_peers = 1u << peers.size();
  // best[ideal][peers used], ideals in rising order; equal peers are used from the first on.
  std::map<std::uint32_t, std::vector<double>> best;
  for (const std::uint32_t set : ideals) best[set].assign(all_peers, infinite);
  best[0].assign(all_peers, 0);
  for (const std::uint32_t small : ideals) {
    for (const std::uint32_t large : ideals) {
      if (small == large || (small & ~large) != 0) continue;
      std::vector<std::uint32_t> block;
      for (std::uint32_t v = 0; v < n; ++v) {
        if (((large & ~small) >> v) & 1) block.push_back(v);
      }
      const bool together = std::all_of(graph.colocated.begin(), graph.colocated.end(), [&](const auto& set) {
        const auto inside = std::count_if(set.begin(), set.end(), [&](std::uint32_t v) {
          return std::find(block.begin(), block.end(), v) != block.end();
        });
        return inside == 0 || inside == static_cast<std::ptrdiff_t>(set.size());
      });
      if (!together) continue;
      for (std::uint32_t p = 0; p < peers.size(); ++p) {
        const double cost = block_cost(graph, peers[p], {}, block);
        for (std::uint32_t used = 0; used < all_peers; ++used) {
          if ((used >> p) & 1) continue;
          if (equal && used != (1u << p) - 1) continue;
          double& value = best[large][used | (1u << p)];
          value = std::min(value, std::max(best[small][used], cost));
        }
      }
    }
  }
  const std::vector<double>& last = best[(1u << n) - 1];
  return *std::min_element(last.begin(), last.end());
}

double best_bottleneck_by_orders(const ComputationGraph& graph, const std::vector<Peer>& peers) {
  const std::size_t n = graph.nodes.size();
  NS_CHECK(n <= 7);
  double best = infinite;
  std::vector<std::uint32_t> order;
  for_all_orders(graph, &order, 0, [&] {
    for (std::uint32_t cuts = 0; cuts < (1u << (n - 1)); ++cuts) {
      if (static_cast<std::size_t>(std::popcount(cuts)) >= peers.size()) continue;
      double most = 0;
      std::vector<std::uint32_t> block;
      for (std::size_t i = 0; i < n; ++i) {
        block.push_back(order[i]);
        if (i + 1 < n && !((cuts >> i) & 1)) continue;
        most = std::max(most, block_cost(graph, peers[0], order, block));
        block.clear();
      }
      best = std::min(best, most);
    }
  });
  return best;
}

std::string find_fault(const ComputationGraph& graph, const std::vector<Peer>& peers,
                       const std::vector<BlockReport>& blocks, double bottleneck) {
  if (blocks.size() > peers.size()) return fmt::format("{} blocks for {} peers", blocks.size(), peers.size());
  std::vector<std::uint32_t> block_of(graph.nodes.size(), ~0u), order;
  std::set<std::uint32_t> used;
  for (std::uint32_t b = 0; b < blocks.size(); ++b) {
    if (blocks[b].nodes.empty()) return fmt::format("block {} is empty", b);
    if (blocks[b].device >= peers.size() || !used.insert(blocks[b].device).second)
      return "a peer is used twice";
    for (const std::uint32_t v : blocks[b].nodes) {
      if (v >= graph.nodes.size() || block_of[v] != ~0u) return fmt::format("node {} is nowhere or twice", v);
      block_of[v] = b;
      order.push_back(v);
    }
  }
  if (order.size() != graph.nodes.size()) return "a node has no block";
  // The pipeline's order and the order inside the blocks are one order of execution: no cycle between blocks.
  std::vector<std::size_t> place(order.size());
  for (std::size_t i = 0; i < order.size(); ++i) place[order[i]] = i;
  for (std::uint32_t v = 0; v < graph.nodes.size(); ++v) {
    for (const std::uint32_t u : graph.nodes[v].inputs) {
      if (place[u] >= place[v]) return fmt::format("node {} runs before its input {}", v, u);
    }
  }
  for (const auto& set : graph.colocated) {
    for (const std::uint32_t v : set) {
      if (block_of[v] != block_of[set[0]]) return "a co-located set is cut";
    }
  }
  double most = 0;
  for (const BlockReport& block : blocks) {
    const Parts parts = parts_of(graph, peers[block.device], order, block.nodes);
    if (!near(parts.work, block.work) || !near(parts.in, block.in) || !near(parts.out, block.out) ||
        !near(parts.overflow, block.overflow) || !near(parts.total(), block.cost) ||
        !near(parts.params, block.params)) {
      return fmt::format("stated work {} in {} out {} overflow {}, true {} {} {} {}", block.work, block.in,
                         block.out, block.overflow, parts.work, parts.in, parts.out, parts.overflow);
    }
    if (!std::isfinite(parts.total())) return "a block does not fit its peer";
    most = std::max(most, parts.total());
  }
  return near(most, bottleneck) ? "" : fmt::format("stated bottleneck {}, true {}", bottleneck, most);
}

}  // namespace neuroshard::test
