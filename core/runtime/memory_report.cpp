#include "core/runtime/memory_report.h"

#include <algorithm>
#include <numeric>

#include "core/chain/size_demand.h"
#include "core/engine/member_memory.h"
#include "core/runtime/chain_settings.h"
#include "core/runtime/growth_rules.h"
#include "core/runtime/standing.h"

namespace neuroshard::runtime {
namespace {

std::uint64_t bytes_of(std::uint64_t tiers) {
  return tiers * plan::memory_tier_bytes;
}

// The sizes that the profile fixes. The needs of the first one follow from its rules.
std::vector<plan::ModelSize> fixed_sizes(const config::ConsensusPart& consensus) {
  const config::ConsensusPart first = config::at_size(consensus, 0);
  std::vector<plan::ModelSize> sizes{{config::model_shape(first), engine::most_member_bytes(first)}};
  for (const config::ModelGrowth& size : consensus.sizes)
    sizes.push_back(
        {config::model_shape(config::at_size(consensus, sizes.size())), bytes_of(size.member_tiers)});
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

node::NetworkMemoryView::Model view_of(const plan::ModelSize& size) {
  node::NetworkMemoryView::Model view;
  view.layers = size.shape.layers;
  view.hidden = size.shape.hidden;
  view.parameters = compute::model_parameter_count(size.shape);
  view.member_bytes = size.member_bytes;
  return view;
}

std::uint32_t percent_of(std::uint64_t part, std::uint64_t whole) {
  return whole == 0 ? 0 : static_cast<std::uint32_t>(100 * part / whole);
}

// A size as the chain counts the offers for it.
node::NetworkMemoryView::Model view_of(const plan::ModelSize& size, const chain::SizeOffers& offers) {
  node::NetworkMemoryView::Model view = view_of(size);
  view.members = offers.members;
  view.offered_bytes = bytes_of(offers.tiers);
  view.with_room = offers.with_room;
  view.room_percent = percent_of(offers.units_with_room, offers.units);
  view.network_bytes = bytes_of(offers.tiers_to_offer());
  view.needs_percent = offers.room_percent;
  return view;
}

// A shape of the ladder.
node::NetworkMemoryView::Model view_of(const plan::ModelSize& size,
                                       const std::vector<std::uint64_t>& offered) {
  node::NetworkMemoryView::Model view = view_of(size);
  view.members = static_cast<std::uint32_t>(offered.size());
  view.offered_bytes = std::accumulate(offered.begin(), offered.end(), std::uint64_t{0});
  view.with_room = static_cast<std::uint32_t>(plan::members_with_room(size, offered));
  view.room_percent = percent_of(view.with_room, view.members);
  return view;
}

// The first size stays with any memory. People see who has room for it.
chain::SizeOffers offers_for_first(const plan::ModelSize& first, const chain::Registry& registry) {
  const std::uint64_t tiers = (first.member_bytes + plan::memory_tier_bytes - 1) / plan::memory_tier_bytes;
  return chain::offers_for(chain::SizeNeeds{static_cast<std::uint32_t>(tiers), 0}, registry,
                           chain::Counted::Active);
}

node::SizeChange change_of(std::uint32_t size, std::uint32_t next) {
  if (next == size) return node::SizeChange::None;
  return next > size ? node::SizeChange::Up : node::SizeChange::Down;
}

std::uint64_t lacking(std::uint64_t needed, std::uint64_t there) {
  return needed - std::min(needed, there);
}

}  // namespace

MemoryReport::MemoryReport(const config::ConsensusPart& consensus)
    : needs_(size_needs(consensus)),
      sizes_(needs_.empty() ? sizes_by_rules(consensus) : fixed_sizes(consensus)) {}

node::NetworkMemoryView MemoryReport::view(const chain::Registry& registry, const net::NodeId& self) const {
  node::NetworkMemoryView view;
  if (const chain::MemberRecord* own = registry.find(self)) view.own_bytes = bytes_of(own->memory_tiers);
  if (needs_.empty()) {
    add_ladder(registry, view);
  } else {
    add_sizes(registry, view);
  }
  const plan::Tier tier = plan::tier_of(view.offered_bytes);
  view.tier = to_string(tier);
  if (const auto next = plan::next_tier_bytes(tier)) {
    view.next_tier = to_string(plan::tier_of(*next));
    view.next_tier_bytes = *next;
  }
  return view;
}

node::MemoryOutlook MemoryReport::outlook(const chain::Registry& registry, const net::NodeId& self) const {
  node::MemoryOutlook outlook;
  outlook.memory = view(registry, self);
  if (needs_.empty()) {
    if (outlook.memory.next)
      outlook.lacking_members =
          outlook.memory.needs_room - std::min(outlook.memory.needs_room, outlook.memory.next->with_room);
    return outlook;
  }
  const chain::SizeDemand demand = chain::size_demand(needs_, registry);
  outlook.asks = change_of(registry.size().size, demand.asked);
  const bool shrinks = outlook.asks == node::SizeChange::Down;
  const chain::SizeOffers& offers = shrinks ? demand.present : demand.larger;
  outlook.lacking_bytes = bytes_of(lacking(offers.tiers_to_offer(), offers.tiers));
  outlook.lacking_members =
      chain::members_lacking(offers, registry, shrinks ? chain::Counted::Seen : chain::Counted::Active);
  return outlook;
}

bool MemoryReport::counts(const chain::Registry& registry, const chain::MemberRecord& member) const {
  if (!needs_.empty()) return chain::is_counted(registry, member.number, chain::Counted::Active);
  return member.presence == chain::Presence::Active && is_trusted(registry, member);
}

void MemoryReport::add_sizes(const chain::Registry& registry, node::NetworkMemoryView& view) const {
  const chain::SizeRecord& size = registry.size();
  const chain::SizeDemand demand = chain::size_demand(needs_, registry);
  view.members = demand.larger.members;
  view.known = demand.larger.known;
  view.offered_bytes = bytes_of(demand.larger.tiers);
  view.needs_room = (demand.larger.members * chain::larger_room_percent + 99) / 100;
  const plan::ModelSize& present = sizes_[size.size];
  view.present =
      view_of(present, demand.present.needs ? demand.present : offers_for_first(present, registry));
  if (size.size + 1 < sizes_.size()) view.next = view_of(sizes_[size.size + 1], demand.larger);
  if (size.size > 0) {
    const plan::ModelSize& smaller = sizes_[size.size - 1];
    const std::size_t needs = size.size - 1;  // the first size has none
    view.smaller =
        view_of(smaller, needs > 0 ? chain::offers_for(needs_[needs - 1], registry, chain::Counted::Active)
                                   : offers_for_first(smaller, registry));
  }
  view.can_change = true;
  view.asked = change_of(size.size, size.next);
  view.results = size.results;
  view.results_needed = chain::results_to_change_size;
  view.changing = size.changing;
}

void MemoryReport::add_ladder(const chain::Registry& registry, node::NetworkMemoryView& view) const {
  std::vector<std::uint64_t> offered;
  for (const std::uint32_t position : registry.active()) {
    const chain::MemberRecord& member = registry.members()[position];
    if (is_trusted(registry, member)) offered.push_back(bytes_of(member.memory_tiers));
  }
  const plan::NetworkMemory memory = plan::network_memory(sizes_, 0, offered);
  view.members = static_cast<std::uint32_t>(offered.size());
  view.known = static_cast<std::uint32_t>(memory.known);
  view.offered_bytes = memory.offered_bytes;
  view.needs_room = static_cast<std::uint32_t>(memory.needs_room);
  view.present = view_of(sizes_.front(), offered);
  if (memory.possible > 0) view.possible = view_of(sizes_[memory.possible], offered);
  if (memory.possible + 1 < sizes_.size()) view.next = view_of(sizes_[memory.possible + 1], offered);
}

}  // namespace neuroshard::runtime
