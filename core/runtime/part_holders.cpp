#include "core/runtime/part_holders.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/runtime/standing.h"

namespace neuroshard::runtime {
PartHolders::PartHolders(std::vector<compute::StageRange> parts, std::uint32_t own_part,
                         const net::NodeId& self, FindRegistry registry)
    : parts_(std::move(parts)), own_(own_part), self_(self), find_registry_(std::move(registry)) {}

std::vector<net::NodeId> PartHolders::of_part(const chain::Registry& registry, std::uint32_t part) const {
  std::vector<net::NodeId> ids;
  for (const std::uint32_t position : registry.active()) {
    const chain::MemberRecord& member = registry.members()[position];
    if (member.rows.has(part) && is_trusted(registry, member)) ids.push_back(member.id);
  }
  return ids;
}

std::vector<net::NodeId> PartHolders::of_range(const compute::StageRange& range) const {
  const chain::RegistryPtr now = registry();
  const auto at = std::find(parts_.begin(), parts_.end(), range);
  if (now == nullptr || at == parts_.end()) return {};
  return of_part(*now, static_cast<std::uint32_t>(at - parts_.begin()));
}

std::size_t PartHolders::fewest(const chain::Registry& registry) const {
  std::size_t fewest = registry.active().size();
  for (std::uint32_t part = 0; part < parts_.size(); ++part)
    fewest = std::min(fewest, of_part(registry, part).size());
  return fewest;
}

Expected<std::vector<pipeline::RouteHop>> PartHolders::choose(const chain::Registry& registry) const {
  const std::vector<net::NodeId> beside = of_part(registry, own_);
  const auto place =
      static_cast<std::size_t>(std::find(beside.begin(), beside.end(), self_) - beside.begin());
  std::vector<pipeline::RouteHop> hops;
  for (std::uint32_t part = 0; part < parts_.size(); ++part) {
    const std::vector<net::NodeId> holders = of_part(registry, part);
    if (holders.empty())
      return make_error(ErrorCode::Unavailable, fmt::format("no member holds part {} of the model: {}",
                                                            part + 1, to_text(parts_[part])));
    const bool here = part == own_ && place < beside.size();
    hops.push_back({here ? self_ : holders[(place + registry.round()) % holders.size()], parts_[part]});
  }
  return hops;
}

Expected<void> PartHolders::admit(const net::NodeId& node) const {
  const chain::RegistryPtr now = registry();
  const chain::MemberRecord* member = now == nullptr ? nullptr : now->find(node);
  if (member != nullptr && is_trusted(*now, *member)) return {};
  return make_error(ErrorCode::Denied,
                    "the node is no voter of this network, and no voter has vouched for it");
}

}  // namespace neuroshard::runtime
