// Which members hold which part of the model, from the chain's registry: for the routes of the pipeline, and for the rule
// whom a stage serves. Only members of trusted wallets count: what they send reaches the weights without the rounds' limits
// for candidates.
//
// Threads: the host's executor.
#pragma once

#include <functional>
#include <vector>

#include "core/chain/registry.h"
#include "core/compute/stage_range.h"
#include "core/crypto/keys.h"
#include "core/net/node_id.h"
#include "core/pipeline/route.h"

namespace neuroshard::runtime {

class PartHolders {
 public:
  // Of the newest block; null: this node has no history yet.
  using FindRegistry = std::function<chain::RegistryPtr()>;

  PartHolders(std::vector<compute::StageRange> parts, std::uint32_t own_part, const net::NodeId& self,
              FindRegistry registry);

  chain::RegistryPtr registry() const { return find_registry_(); }
  std::size_t parts() const { return parts_.size(); }
  const compute::StageRange& range(std::uint32_t part) const { return parts_[part]; }
  std::uint32_t own_part() const { return own_; }
  void set_own_part(std::uint32_t part) { own_ = part; }

  // Trusted and active, ascending by number.
  std::vector<net::NodeId> of_part(const chain::Registry& registry, std::uint32_t part) const;
  std::vector<net::NodeId> of_range(const compute::StageRange& range) const;  // now
  std::size_t fewest(const chain::Registry& registry) const;                  // of a part
  // By part: the speeds together that its holders state (plan/holder_speeds.h). Empty: none states one.
  std::vector<double> speeds_together(const chain::Registry& registry) const;
  // A holder for each part, of its own part this node. Holders of about the same speed take turns from round to round. Unavailable:
  // a part has no holder.
  // Holders of this node's rank among the speeds (plan::SpeedLine).
  Expected<std::vector<pipeline::RouteHop>> for_training(const chain::Registry& registry) const;
  // Holders of any rank, in proportion to their speeds: a slow node's user waits for fast ones.
  Expected<std::vector<pipeline::RouteHop>> for_text(const chain::Registry& registry) const;
  // Denied: the node's wallet neither votes nor is vouched for.
  Expected<void> admit(const net::NodeId& node) const;

 private:
  // By part, ascending by number as of_part().
  std::vector<std::vector<double>> speeds(const chain::Registry& registry) const;
  std::size_t own_position(const chain::Registry& registry) const;  // among the holders of its part
  Expected<std::vector<pipeline::RouteHop>> at(const chain::Registry& registry, double place) const;

  const std::vector<compute::StageRange> parts_;
  std::uint32_t own_;
  const net::NodeId self_;
  const FindRegistry find_registry_;
};

}  // namespace neuroshard::runtime
