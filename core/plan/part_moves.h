// The holders of a model that is cut into fixed parts: where a node that joins begins, and which nodes move when
// some parts have too few holders (docs/protocol/placement.md, "Parts").
//
// The pipeline is as fast as its slowest part, and every text passes all of them. So a plan first gives each part a holder,
// then holders of two wallets, then as many nodes as the others have. A move costs a node a transfer and some rounds, so
// nodes move only where that makes a difference.
//
// Pure: nodes with the same facts find the same moves. Cost: nodes times moves. Threads: any.
#pragma once

#include <cstdint>
#include <vector>

#include "core/base/bytes.h"

namespace neuroshard::plan {

enum class HolderState : std::uint8_t {
  Active,    // it trains
  Arriving,  // it fetches the part
  Asleep,    // it was active within the last day
};

struct PartHolder {
  Hash256 node{};
  std::uint32_t wallet = 0;
  std::uint32_t part = 0;  // less than the number of parts
  HolderState state = HolderState::Active;
  bool movable = true;  // false: its owner chose the part
};

enum class MoveReason : std::uint8_t {
  NoHolder,    // the part has none, and nobody can train; its first weights follow from the network's id
  OneWallet,   // all its holders have one owner
  FewHolders,  // the other parts have more
};

struct PartMove {
  std::uint32_t from = 0, to = 0;
  MoveReason reason = MoveReason::NoHolder;
  // Of `from`, at least one: the first moves. When it doesn't, the second is next.
  std::vector<Hash256> order;
};

inline constexpr std::size_t least_wallets = 2;  // that hold a part

// can_get: by part, at least one: somebody has its weights, or they are the first ones. A part that was trained and has lost all
// its holders waits for one of them. lot: draws among equals, the same for all nodes.
std::vector<PartMove> plan_part_moves(const std::vector<bool>& can_get,
                                      const std::vector<PartHolder>& holders, const Hash256& lot);

// For a node that is not among the holders. can_hold: by part, that it can get and has the memory for. Where that is none: a part
// that follows from its id.
std::uint32_t choose_part(const std::vector<bool>& can_hold, const std::vector<PartHolder>& holders,
                          const Hash256& node);

}  // namespace neuroshard::plan
