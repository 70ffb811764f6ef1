#include "core/sim/unit_owners.h"

#include <algorithm>

#include "core/plan/architecture.h"
#include "core/sim/slot_transfers.h"

namespace neuroshard::sim {

std::vector<std::uint32_t> count_owners(const std::vector<ServedRange>& served, std::uint32_t units) {
  std::vector<UnitSet> of_owner;
  for (const ServedRange& one : served) {
    if (one.owner >= of_owner.size()) of_owner.resize(one.owner + 1);
    of_owner[one.owner] |= set_of(one.range);
  }
  std::vector<std::uint32_t> count(units, 0);
  for (const UnitSet& set : of_owner)
    for (std::uint32_t unit = 0; set.any() && unit < units; ++unit) count[unit] += set.test(unit) ? 1 : 0;
  return count;
}

void keep_replicas(std::vector<RangeSwitch>* nodes, std::uint32_t units) {
  while (true) {
    std::vector<ServedRange> after;
    for (const RangeSwitch& node : *nodes)
      after.push_back({node.goes ? node.wanted : node.serving, node.owner});
    const std::vector<std::uint32_t> owners = count_owners(after, units);
    const auto stays = std::find_if(nodes->begin(), nodes->end(), [&](const RangeSwitch& node) {
      for (std::uint32_t unit = node.serving.first; node.goes && unit < node.serving.end; ++unit)
        if (!node.wanted.holds(unit) && owners[unit] < plan::least_replicas) return true;
      return false;
    });
    if (stays == nodes->end()) return;
    stays->goes = false;
  }
}

}  // namespace neuroshard::sim
