// The size of the model that the members' memory asks for (model_size.h). The registry counts like this after each result, and so does
// whatever shows it to people.
//
// Pure functions of a registry.  Threads: any.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/chain/model_size.h"
#include "core/chain/registry.h"

namespace neuroshard::chain {

// Offers of the members that have a share of the votes, against what one size needs. Others can register as many nodes as they like.
struct SizeOffers {
  std::optional<SizeNeeds> needs;   // nothing: there is no such size, or it needs nothing
  std::uint32_t room_percent = 0;   // so much of the units has to have room
  std::uint32_t offer_percent = 0;  // and so much of what all members need has to be offered
  std::uint32_t members = 0;
  std::uint32_t known = 0;      // of them, those that offer any
  std::uint32_t with_room = 0;  // of them, those that offer what each member needs
  std::uint64_t units = 0, units_with_room = 0;
  std::uint64_t tiers = 0;  // that they offer together

  std::uint64_t tiers_to_offer() const;                                            // so that it is enough
  bool has_room() const { return 100 * units_with_room >= room_percent * units; }  // enough of the units
  bool is_enough() const;                                                          // false without needs
};

enum class Counted : std::uint8_t {
  Active,
  Seen,  // also those that have been away for less than `seen_window_ms`
};
// Without percentages: nobody has to have room, and nothing has to be offered.
SizeOffers offers_for(const std::optional<SizeNeeds>& needs, const Registry& registry, Counted counted);
// Whether this member's offer is among them.
bool is_counted(const Registry& registry, std::uint32_t member, Counted counted);
// The fewest members without room that would have to have it, so that those with room have enough of the units. offers: of this
// registry, counted like this.
std::uint32_t members_lacking(const SizeOffers& offers, const Registry& registry, Counted counted);

struct SizeDemand {
  SizeOffers larger;        // for the next larger size, by active members
  SizeOffers present;       // for the present size, by members that were seen
  std::uint32_t asked = 0;  // the size that they ask for: a neighbour of the present one, or this
};
// sizes: of the rules.
SizeDemand size_demand(const std::vector<SizeNeeds>& sizes, const Registry& registry);

}  // namespace neuroshard::chain
