#include "core/chain/size_demand.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "core/chain/detail/shares.h"

namespace neuroshard::chain {

namespace {

std::vector<Share> counted_shares(const Registry& registry, Counted counted) {
  std::vector<Share> shares = counted == Counted::Active ? all_shares(registry) : seen_shares(registry);
  return limited_shares(std::move(shares), registry, registry.beacon());
}

}  // namespace

SizeOffers offers_for(const std::optional<SizeNeeds>& needs, const Registry& registry, Counted counted) {
  SizeOffers offers;
  offers.needs = needs;
  for (const Share& share : counted_shares(registry, counted)) {
    const std::uint32_t offered = registry.find(share.member)->memory_tiers;
    ++offers.members;
    offers.units += share.units;
    offers.tiers += offered;
    if (offered > 0) ++offers.known;
    if (!needs || offered < needs->member_tiers) continue;
    ++offers.with_room;
    offers.units_with_room += share.units;
  }
  return offers;
}

bool is_counted(const Registry& registry, std::uint32_t member, Counted counted) {
  const std::vector<Share> shares = counted_shares(registry, counted);
  return std::any_of(shares.begin(), shares.end(),
                     [member](const Share& share) { return share.member == member; });
}

std::uint32_t members_lacking(const SizeOffers& offers, const Registry& registry, Counted counted) {
  if (!offers.needs) return 0;
  std::vector<std::uint32_t> without;  // units
  for (const Share& share : counted_shares(registry, counted))
    if (registry.find(share.member)->memory_tiers < offers.needs->member_tiers)
      without.push_back(share.units);
  std::sort(without.begin(), without.end(), std::greater<>());
  SizeOffers then = offers;
  std::uint32_t lacking = 0;
  while (lacking < without.size() && !then.has_room()) then.units_with_room += without[lacking++];
  return lacking;
}

std::uint64_t SizeOffers::tiers_to_offer() const {
  return needs ? (std::uint64_t{offer_percent} * needs->network_tiers + 99) / 100 : 0;
}

bool SizeOffers::is_enough() const {
  return needs && units > 0 && has_room() && tiers >= tiers_to_offer();
}

SizeDemand size_demand(const std::vector<SizeNeeds>& sizes, const Registry& registry) {
  const std::uint32_t now = registry.size().size;
  const auto needs_of = [&sizes](std::uint32_t size) -> std::optional<SizeNeeds> {
    if (size == 0 || size > sizes.size()) return {};
    return sizes[size - 1];
  };
  SizeDemand demand;
  demand.larger = offers_for(needs_of(now + 1), registry, Counted::Active);
  demand.present = offers_for(needs_of(now), registry, Counted::Seen);
  demand.larger.room_percent = larger_room_percent;
  demand.larger.offer_percent = larger_offer_percent;
  demand.present.room_percent = present_room_percent;
  demand.present.offer_percent = present_offer_percent;
  demand.asked = now;
  if (demand.larger.is_enough()) {
    demand.asked = now + 1;
  } else if (demand.present.needs && !demand.present.is_enough()) {
    demand.asked = now - 1;
  }
  return demand;
}

}  // namespace neuroshard::chain
