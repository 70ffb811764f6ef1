// The holders of a model that is cut into fixed parts: where a node that joins begins, and which nodes move when
// some parts have too few holders (docs/protocol/placement.md, "Parts").
//
// The pipeline is as fast as its slowest part, and every text passes all of them. So a plan first gives each part a holder,
// then holders of two wallets, then as much speed as the others have. A move costs a node a transfer and some rounds, so
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
  bool movable = true;      // false: its owner chose the part
  std::uint32_t speed = 0;  // that it says, of its training: FLOP/s in any unit; 0: nothing yet
};

enum class MoveReason : std::uint8_t {
  NoHolder,   // the part has none, and nobody can train; its first weights follow from the network's id
  OneWallet,  // all its holders have one owner
  SlowPart,   // another part is faster
};

struct PartMove {
  std::uint32_t from = 0, to = 0;
  MoveReason reason = MoveReason::NoHolder;
  // Of `from`, at least one: the first moves. When it doesn't, the second is next.
  std::vector<Hash256> order;
};

inline constexpr std::size_t least_wallets = 2;  // that hold a part

struct ModelPart {
  // Somebody has its weights, or they are the first ones. A part that was trained and has lost all its holders waits for one of
  // them.
  bool can_get = true;
  double work = 1;  // of a token, in any unit, > 0
};

// parts: at least one. lot: draws among equals, the same for all nodes.
std::vector<PartMove> plan_part_moves(const std::vector<ModelPart>& parts,
                                      const std::vector<PartHolder>& holders, const Hash256& lot);

// For a node that is not among the holders. can_get of a part: and this node has the memory for it. Where that is none: a part that
// follows from its id.
std::uint32_t choose_part(const std::vector<ModelPart>& parts, const std::vector<PartHolder>& holders,
                          const Hash256& node);

}  // namespace neuroshard::plan
