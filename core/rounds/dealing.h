// Who is in which sub-group of a round of two levels (SPEC §7), who speaks for a sub-group, and who leads:
// all from the previous round's certificate, so nobody chooses and everybody finds the same.
//
// hash("deal", beacon, round, slot, id) orders the members; the order is cut into sub-groups of 8 to 16.
// While members are few the sub-groups are small, because a rule over three sub-groups or fewer can't outvote
// a bad one. The beacon is the previous certificate's hash, known when its leader proposed: a leader can try
// several contents and so influence the next dealing a little, until a ledger gives a better beacon.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "core/rounds/certificate.h"

namespace neuroshard::rounds {

// The SPEC's. A laboratory's network may have smaller sub-groups, so that a few nodes show what many do.
inline constexpr std::size_t max_group_members = 16;
inline constexpr std::size_t least_grouped_members = max_group_members + 1;  // fewer are one group
inline constexpr std::size_t least_group_setting = 3;

// The members of a round, ascending by id.  Immutable, shared.
struct Roster {
  std::vector<RoundMember> members;
  Hash256 hash{};  // of keys and missed rounds
};
using RosterPtr = std::shared_ptr<const Roster>;
RosterPtr make_roster(std::vector<RoundMember> members);  // sorts
Bytes encode_roster(const Roster& roster);
Expected<RosterPtr> decode_roster(ByteSpan bytes);
// The index of a node; members.size(): it is none.  O(log n).
std::size_t roster_index(const Roster& roster, const net::NodeId& id);

// Sub-groups of at most `most` for n members; 1 for no more than that.
std::size_t group_count(std::size_t n, std::size_t most = max_group_members);

struct Deal {
  RoundSlot slot;
  std::uint64_t round = 0;
  Hash256 previous{};
  RosterPtr roster;
  std::vector<std::uint16_t> group_of;                                  // by member
  std::vector<std::shared_ptr<const std::vector<RoundMember>>> groups;  // ascending by id
  // Members of each sub-group in the order in which they speak for it: first in view 0, and so on.
  std::vector<std::vector<std::uint16_t>> speakers;
  std::shared_ptr<const std::vector<std::size_t>> leaders;  // leader_order() of all members

  // Two speak for a sub-group in each view, so that one may be dead.
  static constexpr std::size_t speakers_at_once = 2;
  std::uint16_t speaker(std::size_t group, std::uint32_t view, std::size_t which) const {
    const auto& order = speakers[group];
    return order[(view + which) % order.size()];
  }
  bool speaks(std::uint16_t member, std::uint32_t view) const;
  std::size_t leader(std::uint32_t view) const { return (*leaders)[view % leaders->size()]; }
};
std::shared_ptr<const Deal> make_deal(const Hash256& previous, std::uint64_t round, const RoundSlot& slot,
                                      RosterPtr roster, std::size_t most = max_group_members);
// What a sub-group's own agreement takes for the previous body: votes of one sub-group mean nothing in
// another.
Hash256 group_beacon(const Hash256& previous, std::uint16_t group);

}  // namespace neuroshard::rounds
