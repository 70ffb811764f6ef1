#include "core/sim/slot_transfers.h"

#include <algorithm>

namespace neuroshard::sim {

UnitSet set_of(plan::UnitRange range) {
  UnitSet set;
  for (std::uint32_t unit = range.first; unit < range.end; ++unit) set.set(unit);
  return set;
}

std::uint32_t next_unit(const TransferNode& node, std::uint32_t size) {
  for (std::uint32_t unit = node.wanted.first; unit < node.wanted.end; ++unit)
    if (!node.has.test(unit)) return unit;
  return size;
}

double transfer(const plan::Chain& chain, const std::vector<TransferNode*>& nodes, const UnitSet& archived,
                double seconds) {
  const std::uint32_t size = chain.size();
  std::vector<std::uint32_t> fetched, fetchers(size, 0);
  for (const TransferNode* node : nodes) {
    fetched.push_back(next_unit(*node, size));
    if (fetched.back() < size) ++fetchers[fetched.back()];
  }
  // Bytes/s that one fetcher of each unit gets.
  std::vector<double> supply(size, 0);
  for (const TransferNode* node : nodes) {
    std::uint32_t load = 0;
    for (std::uint32_t unit = 0; unit < size; ++unit) load += node->gives.test(unit) ? fetchers[unit] : 0;
    for (std::uint32_t unit = 0; load > 0 && unit < size; ++unit)
      if (node->gives.test(unit)) supply[unit] += node->up / load;
  }
  double moved = 0;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    TransferNode& node = *nodes[i];
    const std::uint32_t unit = fetched[i];
    if (unit >= size) continue;
    const double rate = archived.test(unit) ? node.down : std::min(node.down, supply[unit]);
    const auto bytes = static_cast<double>(chain.unit(unit).transfer_bytes);
    const double part = std::min(rate * seconds, bytes - node.progress);
    moved += part;
    node.progress += part;
    if (node.progress < bytes) continue;
    node.progress = 0;
    node.has.set(unit);
  }
  return moved;
}

}  // namespace neuroshard::sim
