// The size of the network's model, as the chain decides it (docs/protocol/chain.md, "The size of the model").
//
// The rules name what each larger size needs of the members' memory. After each result the registry compares these needs with
// what the members offer. When the same neighbouring size was asked for by `results_to_change_size` results in a row, the next round
// trains nothing: it is closed as soon as it opens, and its result has the anchors of the other size, all or none.
#pragma once

#include <cstdint>

namespace neuroshard::chain {

// In whole 500 MB.
struct SizeNeeds {
  std::uint32_t member_tiers = 0;   // of each member
  std::uint32_t network_tiers = 0;  // of all members together
  friend bool operator==(const SizeNeeds&, const SizeNeeds&) = default;
};

inline constexpr std::uint32_t results_to_change_size = 4;
// A larger size needs room in members with so much of the units, and so much of its needs offered by all of them.
inline constexpr std::uint32_t larger_room_percent = 75, larger_offer_percent = 150;
// A size stays as long as members with so much of the units have room for it, and its needs are offered. Members that are away
// for less than seven days count here: a model does not shrink overnight.
inline constexpr std::uint32_t present_room_percent = 50, present_offer_percent = 100;

// Of a registry.
struct SizeRecord {
  std::uint32_t size = 0;     // of the rows' anchors: 0 is that of the genesis
  std::uint32_t next = 0;     // that the members' memory asks for: a neighbour of `size`, or `size`
  std::uint32_t results = 0;  // that asked for it, in a row
  bool changing = false;      // the round in progress makes the anchors of `next`
  friend bool operator==(const SizeRecord&, const SizeRecord&) = default;
};

}  // namespace neuroshard::chain
