#include "core/plan/network_memory.h"

#include <algorithm>
#include <numeric>

#include "core/compute/slot.h"

namespace neuroshard::plan {

std::vector<ModelSize> model_sizes(
    const GrowthRules& rules, const std::function<std::uint64_t(const compute::ModelShape&)>& member_bytes) {
  std::vector<ModelSize> sizes;
  std::uint64_t parameters = 0;
  for (const Rung& rung : ladder(rules)) {
    const std::uint64_t has = compute::model_parameter_count(rung.shape);
    if (!sizes.empty() && 100 * has < upgrade_parameters_percent * parameters) continue;
    parameters = has;
    sizes.push_back({rung.shape, member_bytes(rung.shape)});
  }
  return sizes;
}

std::size_t members_with_room(const ModelSize& size, const std::vector<std::uint64_t>& offered) {
  return static_cast<std::size_t>(std::count_if(
      offered.begin(), offered.end(), [&size](std::uint64_t bytes) { return bytes >= size.member_bytes; }));
}

NetworkMemory network_memory(const std::vector<ModelSize>& sizes, std::size_t present,
                             const std::vector<std::uint64_t>& offered) {
  NetworkMemory memory;
  memory.offered_bytes = std::accumulate(offered.begin(), offered.end(), std::uint64_t{0});
  memory.known = static_cast<std::size_t>(
      std::count_if(offered.begin(), offered.end(), [](std::uint64_t bytes) { return bytes > 0; }));
  memory.needs_room = (offered.size() * members_with_room_percent + 99) / 100;
  memory.possible = present;
  while (memory.possible + 1 < sizes.size() && !offered.empty() &&
         members_with_room(sizes[memory.possible + 1], offered) >= memory.needs_room)
    ++memory.possible;
  return memory;
}

}  // namespace neuroshard::plan
