#include "core/plan/network_memory.h"

#include <algorithm>
#include <numeric>

#include "core/compute/stage_range.h"

namespace neuroshard::plan {
namespace {

// Of the largest part.
std::uint64_t member_bytes(const GrowthRules& rules, const compute::ModelShape& shape, std::uint32_t parts) {
  std::uint64_t most = 0;
  for (const compute::StageRange& range : compute::cut_model(shape, parts)) {
    compute::StageSpec spec;
    spec.shape = shape;
    spec.first_layer = range.first_layer;
    spec.layer_count = range.layer_count;
    spec.embed = range.embed;
    spec.head = range.head;
    most = std::max(most, training_bytes(rules, spec));
  }
  return program_bytes + most;
}

}  // namespace

std::vector<ModelSize> model_sizes(const GrowthRules& rules, std::uint32_t parts) {
  std::vector<ModelSize> sizes;
  std::uint64_t parameters = 0;
  for (const Rung& rung : ladder(rules)) {
    const std::uint64_t has = compute::model_parameter_count(rung.shape);
    if (!sizes.empty() && 100 * has < upgrade_parameters_percent * parameters) continue;
    parameters = has;
    sizes.push_back({rung.shape, member_bytes(rules, rung.shape, parts)});
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
  memory.tier = tier_of(memory.offered_bytes);
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
