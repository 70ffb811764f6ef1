#include "core/runtime/memory_report.h"

#include "core/engine/member_memory.h"
#include "core/runtime/growth_rules.h"
#include "core/runtime/standing.h"

namespace neuroshard::runtime {
namespace {

// The sizes that the profile fixes. The needs of the first one follow from its rules.
std::vector<plan::ModelSize> fixed_sizes(const config::ConsensusPart& consensus) {
  const config::ConsensusPart first = config::at_size(consensus, 0);
  std::vector<plan::ModelSize> sizes{{config::model_shape(first), engine::most_member_bytes(first)}};
  for (const config::ModelGrowth& size : consensus.sizes)
    sizes.push_back({config::model_shape(config::at_size(consensus, sizes.size())),
                     size.member_tiers * plan::memory_tier_bytes});
  return sizes;
}

// A profile without sizes: those of the ladder.
std::vector<plan::ModelSize> sizes_by_rules(const config::ConsensusPart& consensus) {
  plan::GrowthRules rules = growth_rules(consensus);
  if (!plan::validate(rules).ok()) rules.grows = false;  // a shape that no larger one continues
  return plan::model_sizes(rules, [network = consensus](const compute::ModelShape& shape) mutable {
    network.layers = shape.layers;
    network.hidden = shape.hidden;
    return engine::most_member_bytes(network);
  });
}

node::NetworkMemoryView::Model view_of(const plan::ModelSize& size,
                                       const std::vector<std::uint64_t>& offered) {
  return {size.shape.layers, size.shape.hidden, compute::model_parameter_count(size.shape), size.member_bytes,
          static_cast<std::uint32_t>(plan::members_with_room(size, offered))};
}

}  // namespace

MemoryReport::MemoryReport(const config::ConsensusPart& consensus)
    : sizes_(consensus.sizes.empty() ? sizes_by_rules(consensus) : fixed_sizes(consensus)),
      present_(consensus.size) {}

node::NetworkMemoryView MemoryReport::view(const chain::Registry& registry, const net::NodeId& self) const {
  node::NetworkMemoryView view;
  std::vector<std::uint64_t> offered;
  for (const std::uint32_t position : registry.active()) {
    const chain::MemberRecord& member = registry.members()[position];
    if (is_trusted(registry, member)) offered.push_back(member.memory_tiers * plan::memory_tier_bytes);
  }
  if (const chain::MemberRecord* own = registry.find(self))
    view.own_bytes = own->memory_tiers * plan::memory_tier_bytes;
  const plan::NetworkMemory memory = plan::network_memory(sizes_, present_, offered);
  view.members = static_cast<std::uint32_t>(offered.size());
  view.known = static_cast<std::uint32_t>(memory.known);
  view.offered_bytes = memory.offered_bytes;
  view.tier = to_string(memory.tier);
  if (const auto next = plan::next_tier_bytes(memory.tier)) {
    view.next_tier = to_string(plan::tier_of(*next));
    view.next_tier_bytes = *next;
  }
  view.needs_room = static_cast<std::uint32_t>(memory.needs_room);
  view.present = view_of(sizes_[present_], offered);
  if (memory.possible > present_) view.possible = view_of(sizes_[memory.possible], offered);
  if (memory.possible + 1 < sizes_.size()) view.next = view_of(sizes_[memory.possible + 1], offered);
  return view;
}

}  // namespace neuroshard::runtime
