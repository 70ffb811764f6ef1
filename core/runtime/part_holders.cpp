#include "core/runtime/part_holders.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "core/plan/holder_speeds.h"
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

std::vector<std::vector<double>> PartHolders::speeds(const chain::Registry& registry) const {
  std::vector<std::uint32_t> part_of;
  std::vector<plan::SaidSpeed> said;
  for (const std::uint32_t position : registry.active()) {
    const chain::MemberRecord& member = registry.members()[position];
    if (!is_trusted(registry, member)) continue;
    for (std::uint32_t part = 0; part < parts_.size(); ++part) {
      if (!member.rows.has(part)) continue;
      part_of.push_back(part);
      said.push_back({member.speed, member.wallet});
    }
  }
  const std::vector<double> counted = plan::counted_speeds(said);
  std::vector<std::vector<double>> by_part(parts_.size());
  for (std::size_t i = 0; i < counted.size(); ++i) by_part[part_of[i]].push_back(counted[i]);
  return by_part;
}

std::vector<double> PartHolders::speeds_together(const chain::Registry& registry) const {
  const auto states = [&](std::uint32_t position) { return registry.members()[position].speed != 0; };
  if (std::none_of(registry.active().begin(), registry.active().end(), states)) return {};
  std::vector<double> together;
  for (const std::vector<double>& of_part : speeds(registry))
    together.push_back(std::accumulate(of_part.begin(), of_part.end(), 0.0));
  return together;
}

std::size_t PartHolders::own_position(const chain::Registry& registry) const {
  const std::vector<net::NodeId> beside = of_part(registry, own_);
  return static_cast<std::size_t>(std::find(beside.begin(), beside.end(), self_) - beside.begin());
}

Expected<std::vector<pipeline::RouteHop>> PartHolders::at(const chain::Registry& registry,
                                                          double place) const {
  const auto speeds_of = speeds(registry);
  std::vector<pipeline::RouteHop> hops;
  for (std::uint32_t part = 0; part < parts_.size(); ++part) {
    const std::vector<net::NodeId> holders = of_part(registry, part);
    if (holders.empty())
      return make_error(ErrorCode::Unavailable, fmt::format("no member holds part {} of the model: {}",
                                                            part + 1, to_text(parts_[part])));
    const bool own = part == own_ && std::find(holders.begin(), holders.end(), self_) != holders.end();
    const net::NodeId& node =
        own ? self_ : holders[plan::SpeedLine(speeds_of[part], registry.round()).at(place)];
    hops.push_back({node, parts_[part]});
  }
  return hops;
}

Expected<std::vector<pipeline::RouteHop>> PartHolders::for_training(const chain::Registry& registry) const {
  const std::vector<double> beside = speeds(registry)[own_];
  const std::size_t position = own_position(registry);
  return at(registry, position < beside.size() ? plan::SpeedLine(beside).middle(position) : 0.5);
}

Expected<std::vector<pipeline::RouteHop>> PartHolders::for_text(const chain::Registry& registry) const {
  const std::size_t position = own_position(registry), count = of_part(registry, own_).size();
  return at(registry,
            position < count ? (static_cast<double>(position) + 0.5) / static_cast<double>(count) : 0.5);
}

Expected<void> PartHolders::admit(const net::NodeId& node) const {
  const chain::RegistryPtr now = registry();
  const chain::MemberRecord* member = now == nullptr ? nullptr : now->find(node);
  if (member != nullptr && is_trusted(*now, *member)) return {};
  return make_error(ErrorCode::Denied,
                    "the node is no voter of this network, and no voter has vouched for it");
}

}  // namespace neuroshard::runtime
