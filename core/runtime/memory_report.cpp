#include "core/runtime/memory_report.h"

#include <algorithm>

#include "core/config/model_part.h"
#include "core/engine/member_memory.h"
#include "core/runtime/growth_rules.h"
#include "core/runtime/standing.h"

namespace neuroshard::runtime {
namespace {

// Of the member with the most to hold, in a network whose model has this shape.
std::uint64_t most_member_bytes(config::ConsensusPart consensus, const compute::ModelShape& shape) {
  consensus.layers = shape.layers;
  consensus.hidden = shape.hidden;
  std::uint64_t most = 0;
  std::vector<compute::StageRange> parts = config::model_parts(consensus);
  if (parts.empty()) parts = {compute::whole_range(shape)};
  for (const compute::StageRange& part : parts) most = std::max(most, engine::member_bytes(consensus, part));
  return most;
}

node::NetworkMemoryView::Model view_of(const plan::ModelSize& size,
                                       const std::vector<std::uint64_t>& offered) {
  return {size.shape.layers, size.shape.hidden, compute::model_parameter_count(size.shape), size.member_bytes,
          static_cast<std::uint32_t>(plan::members_with_room(size, offered))};
}

}  // namespace

MemoryReport::MemoryReport(const config::ConsensusPart& consensus) {
  plan::GrowthRules rules = growth_rules(consensus);
  if (!plan::validate(rules).ok()) rules.grows = false;  // a shape that no larger one continues
  sizes_ = plan::model_sizes(
      rules, [&consensus](const compute::ModelShape& shape) { return most_member_bytes(consensus, shape); });
}

node::NetworkMemoryView MemoryReport::view(const chain::Registry& registry, const net::NodeId& self) const {
  node::NetworkMemoryView view;
  std::vector<std::uint64_t> offered;
  for (const std::uint32_t position : registry.active()) {
    const chain::MemberRecord& member = registry.members()[position];
    if (is_trusted(registry, member)) offered.push_back(member.memory_tiers * plan::memory_tier_bytes);
  }
  if (const chain::MemberRecord* own = registry.find(self))
    view.own_bytes = own->memory_tiers * plan::memory_tier_bytes;
  const plan::NetworkMemory memory = plan::network_memory(sizes_, 0, offered);
  view.members = static_cast<std::uint32_t>(offered.size());
  view.known = static_cast<std::uint32_t>(memory.known);
  view.offered_bytes = memory.offered_bytes;
  view.tier = to_string(memory.tier);
  if (const auto next = plan::next_tier_bytes(memory.tier)) {
    view.next_tier = to_string(plan::tier_of(*next));
    view.next_tier_bytes = *next;
  }
  view.needs_room = static_cast<std::uint32_t>(memory.needs_room);
  view.present = view_of(sizes_.front(), offered);
  if (memory.possible > 0) view.possible = view_of(sizes_[memory.possible], offered);
  if (memory.possible + 1 < sizes_.size()) view.next = view_of(sizes_[memory.possible + 1], offered);
  return view;
}

}  // namespace neuroshard::runtime
