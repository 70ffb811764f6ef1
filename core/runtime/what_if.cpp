#include "core/runtime/what_if.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "core/chain/size_demand.h"
#include "core/chain/supposed.h"
#include "core/runtime/part_moves.h"

namespace neuroshard::runtime {
namespace {

std::uint32_t whole_votes(std::uint64_t units) {
  return static_cast<std::uint32_t>((units + chain::units_per_wallet - 1) / chain::units_per_wallet);
}

Expected<std::uint32_t> tiers_of(std::uint64_t bytes) {
  const std::uint64_t tiers = bytes / plan::memory_tier_bytes;
  if (tiers == 0)
    return make_error(ErrorCode::InvalidArgument,
                      "a member offers whole 500 MB: name 500 MB or more, or ask about leaving instead");
  if (tiers > chain::most_memory_tiers)
    return make_error(ErrorCode::InvalidArgument,
                      fmt::format("a member can offer {} GB at most; name less",
                                  chain::most_memory_tiers * plan::memory_tier_bytes / 1'000'000'000));
  return static_cast<std::uint32_t>(tiers);
}

std::optional<node::PartWithout> part_without(const WhatIfFacts& facts, const chain::MemberRecord& self,
                                              const chain::Registry& then) {
  const auto parts = static_cast<std::uint32_t>(facts.part_work.size());
  if (parts == 0 || self.rows.is_all()) return std::nullopt;
  std::uint32_t own = 0;
  while (own < parts && !self.rows.has(own)) ++own;
  if (own == parts) return std::nullopt;
  const PlannedParts planned = planned_parts(then, facts.part_work, facts.wall);
  node::PartWithout part;
  part.number = own + 1;
  part.count = parts;
  std::set<std::uint32_t> wallets;
  for (const plan::PartHolder& holder : planned.holders) {
    if (holder.part != own) continue;
    ++part.nodes;
    if (holder.state != plan::HolderState::Asleep) wallets.insert(holder.wallet);
  }
  part.wallets = static_cast<std::uint32_t>(wallets.size());
  part.waits = !planned.parts[own].can_get;
  const auto move = std::find_if(planned.moves.begin(), planned.moves.end(),
                                 [own](const plan::PartMove& each) { return each.to == own; });
  if (move != planned.moves.end()) part.moves_from = move->from + 1;
  return part;
}

std::optional<node::VotesWithout> votes_without(const WhatIfFacts& facts, const chain::MemberRecord& self,
                                                const chain::Registry& then) {
  const chain::VotesWithout units = chain::votes_without(facts.rules, facts.registry, self.number);
  if (units.others == units.all) return std::nullopt;
  node::VotesWithout votes;
  votes.all_units = static_cast<std::uint32_t>(units.all);
  votes.other_units = static_cast<std::uint32_t>(units.others);
  votes.nobody = chain::offers_for({}, then, chain::Counted::Active).units == 0;
  votes.lacking_at_once = whole_votes(units.lacking_at_once);
  votes.lacking_after_wait = whole_votes(units.lacking_after_stall);
  return votes;
}

}  // namespace

Expected<node::WhatIf> what_if(const node::WhatIfQuery& query, const WhatIfFacts& facts) {
  std::uint32_t tiers = 0;
  if (query.memory_bytes) {
    NS_ASSIGN_OR_RETURN(tiers, tiers_of(*query.memory_bytes));
  }
  const chain::MemberRecord* const self = facts.registry.find(facts.self);
  if (self == nullptr)
    return make_error(ErrorCode::Unavailable,
                      "this node is no member of its network yet: wait until \"neuroshardd status\" shows it "
                      "as one, and ask again");
  const chain::RegistryPtr then = query.memory_bytes
                                      ? chain::with_offer(facts.rules, facts.registry, self->number, tiers)
                                      : chain::without_member(facts.rules, facts.registry, self->number);
  node::WhatIf answer;
  answer.counts = facts.memory.counts(facts.registry, *self);
  answer.now = facts.memory.outlook(facts.registry, facts.self);
  answer.then = facts.memory.outlook(*then, facts.self);
  if (query.memory_bytes) return answer;
  answer.part = part_without(facts, *self, *then);
  answer.votes = votes_without(facts, *self, *then);
  return answer;
}

}  // namespace neuroshard::runtime
