// The memory that a network's members offer, for people: from the registry, which has their offers, and the profile, which has
// the rules of the model's shape.
//
// Threads: one.
#pragma once

#include <vector>

#include "core/chain/registry.h"
#include "core/config/network_profile.h"
#include "core/net/node_id.h"
#include "core/node/what_if.h"
#include "core/plan/network_memory.h"

namespace neuroshard::runtime {

class MemoryReport {
 public:
  // The larger models are the sizes of the profile. Where it has none, they are those that its rules would give.
  explicit MemoryReport(const config::ConsensusPart& consensus);

  // With sizes, it counts as the chain does (chain/size_demand.h). Else it counts members that are active and whose wallet votes or
  // was vouched for.
  node::NetworkMemoryView view(const chain::Registry& registry, const net::NodeId& self) const;
  // The same with what follows from it, as of now.
  node::MemoryOutlook outlook(const chain::Registry& registry, const net::NodeId& self) const;
  // Whether it counts this member.
  bool counts(const chain::Registry& registry, const chain::MemberRecord& member) const;

 private:
  void add_sizes(const chain::Registry& registry, node::NetworkMemoryView& view) const;
  void add_ladder(const chain::Registry& registry, node::NetworkMemoryView& view) const;

  const std::vector<chain::SizeNeeds>
      needs_;  // of the profile's sizes after the first; none: the model keeps its size
  const std::vector<plan::ModelSize> sizes_;  // the model's own one first
};

}  // namespace neuroshard::runtime
