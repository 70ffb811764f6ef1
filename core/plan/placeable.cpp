#include "core/plan/placeable.h"

#include <algorithm>
#include <map>

namespace neuroshard::plan {
namespace {

// The second unit of a chain is a layer.
double useful_share(const Chain& chain, const std::vector<PlanPeer>& peers, const PlanOptions& options) {
  const std::uint64_t needed = chain.memory({1, 2});
  const auto useful = std::count_if(peers.begin(), peers.end(), [&](const PlanPeer& peer) {
    return usable_bytes(peer, options.baseline_bytes) >= needed;
  });
  return static_cast<double>(useful) / static_cast<double>(std::max<std::size_t>(1, peers.size()));
}

PlaceableShape with_copies(const GrowthRules& rules, const std::vector<PlanPeer>& peers,
                           const PlanOptions& options, const MakeChain& make_chain, double needed) {
  std::vector<std::uint64_t> memory;
  for (const PlanPeer& peer : peers) memory.push_back(peer.memory);
  const compute::ModelShape largest = choose_architecture(rules, memory).shape;
  PlaceableShape best;
  best.needed_copies = needed;
  const std::vector<Rung> rungs = ladder(rules);
  std::size_t chosen = 0;
  for (std::size_t i = 0; i < rungs.size(); ++i) {
    const compute::ModelShape& shape = rungs[i].shape;
    if (i > 0 && (shape.layers > largest.layers || shape.hidden > largest.hidden)) break;
    const auto chain = make_chain(shape);
    if (!chain.ok() || (i > 0 && useful_share(*chain, peers, options) < options.useful_share)) break;
    const double copies = holdable_copies(*chain, peers, options);
    if (i > 0 && copies < needed) continue;
    best.shape = shape;
    best.copies = copies;
    chosen = i;
  }
  if (chosen + 1 == rungs.size()) return best;
  if (const auto chain = make_chain(rungs[chosen + 1].shape); chain.ok())
    best.next = {rungs[chosen + 1], holdable_copies(*chain, peers, options),
                 useful_share(*chain, peers, options)};
  return best;
}

double in_usable_part(double copies) {
  return 100 * copies / usable_percent;
}

}  // namespace

double holdable_copies(const Chain& chain, const std::vector<PlanPeer>& peers, const PlanOptions& options) {
  // A node that fits only the embedding or the head adds no copy of what lies between them.
  const UnitRange inner = chain.size() > 2 ? UnitRange{1, chain.size() - 1} : chain.whole();
  std::map<std::uint64_t, std::uint64_t> longest;  // by usable memory
  std::uint64_t sum = 0;
  for (const PlanPeer& peer : peers) {
    const std::uint64_t usable = usable_bytes(peer, options.baseline_bytes);
    const auto [entry, is_new] = longest.try_emplace(usable, 0);
    for (std::uint32_t first = inner.first; is_new && first < inner.end; ++first) {
      std::uint32_t end = first;
      while (end < inner.end && chain.memory({first, end + 1}) <= usable) ++end;
      if (end > first) entry->second = std::max(entry->second, chain.transfer({first, end}));
    }
    sum += entry->second;
  }
  return static_cast<double>(sum) / static_cast<double>(chain.transfer(inner));
}

PlaceableShape placeable_shape(const GrowthRules& rules, const std::vector<PlanPeer>& peers,
                               const PlanOptions& options, const MakeChain& make_chain) {
  return with_copies(rules, peers, options, make_chain, in_usable_part(options.replicas));
}

Change decide_placeable_change(const GrowthRules& rules, const compute::ModelShape& present,
                               const std::vector<PlanPeer>& peers, const PlanOptions& options,
                               const MakeChain& make_chain) {
  const auto chain = make_chain(present);
  const auto parameters = [](const compute::ModelShape& shape) {
    return compute::model_parameter_count(shape);
  };
  if (chain.ok() && holdable_copies(*chain, peers, options) < in_usable_part(least_replicas)) {
    const compute::ModelShape smaller = placeable_shape(rules, peers, options, make_chain).shape;
    if (parameters(smaller) < parameters(present)) return {ChangeKind::Downgrade, smaller};
    return {ChangeKind::Keep, present};
  }
  const double surplus = 1 + upgrade_surplus_percent / 100.0;
  const compute::ModelShape larger =
      with_copies(rules, peers, options, make_chain, in_usable_part(options.replicas) * surplus).shape;
  const bool contains = larger.layers >= present.layers && larger.hidden >= present.hidden;
  if (contains && parameters(larger) * 100 >= parameters(present) * upgrade_parameters_percent)
    return {ChangeKind::Upgrade, larger};
  return {ChangeKind::Keep, present};
}

UnitRange carried_range(UnitRange range, std::uint32_t layers_before, std::uint32_t layers_after) {
  if (range.empty()) return {};
  const bool grows = layers_after >= layers_before;
  // Of the larger model, layers before this unit's one follow from other layers.
  const auto unit_after = [&](std::uint32_t unit) {
    if (unit == 0) return 0u;
    if (unit > layers_before) return layers_after + unit - layers_before;
    return 1 + ((unit - 1) * layers_after + (grows ? 0 : layers_before - 1)) / layers_before;
  };
  const UnitRange after{unit_after(range.first), unit_after(range.end)};
  return after.empty() ? UnitRange{} : after;
}

}  // namespace neuroshard::plan
