// Which part of the model this node should hold, where the network chooses: the registry of the chain says what the members
// hold, and the plan (plan/part_moves.h) who should hold another part. Nothing has to be agreed on: nodes find the same
// moves in the same registry, and a node that does not move holds nobody up, for the next one moves then.
//
//   no member yet                         → the part that needs a holder most, before it registers
//   the plan names it                     → it says that it moves (chain::Move); from then on nobody counts on it
//   the registry has another part for it  → its model is made again, it fetches that part, and comes back
//
// Threads: one.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "core/base/clock.h"
#include "core/chain/registry.h"
#include "core/plan/part_moves.h"

namespace neuroshard::runtime {

// All nodes find the same in a registry at this time.
struct PlannedParts {
  std::vector<plan::PartHolder> holders;
  std::vector<plan::ModelPart> parts;
  std::vector<plan::PartMove> moves;
};
// work: of each part, FLOP of a token.
PlannedParts planned_parts(const chain::Registry& registry, const std::vector<double>& work, WallTime wall);

class PartMoves {
 public:
  // A member that fetches a part for longer is not expected any more.
  static constexpr Duration arrival_patience = std::chrono::minutes(15);
  // A holder that is asleep for longer is not expected back soon.
  static constexpr Duration sleep_counts = std::chrono::hours(24);
  // Before the next node in a move's order moves instead.
  static constexpr Duration turn = std::chrono::seconds(30);

  // work: of each part, FLOP of a token.
  PartMoves(const net::NodeId& self, std::vector<double> work)
      : self_(self), parts_(static_cast<std::uint32_t>(work.size())), work_(std::move(work)) {}

  struct Facts {
    const chain::Registry& registry;   // of the newest block
    std::uint32_t held = 0;            // the part that the model here is of
    const std::vector<bool>& fitting;  // by part: this node has the memory for it
    MonotonicTime now{};
    WallTime wall{};
    // This node has contributed to the round in progress, and its work would be lost.
    bool contributed = false;
    bool trained = false;  // it has trained more than a little in that round
  };
  struct Decision {
    std::optional<std::uint32_t> wanted;     // part that the chain should have this node as holder of
    std::optional<std::uint32_t> model;      // part that the model has to be made again with
    std::optional<plan::MoveReason> reason;  // of the plan, when it names this node
  };
  Decision decide(const Facts& facts);

 private:
  struct Turn {
    std::uint32_t to = 0;
    MonotonicTime since{};
  };
  const std::vector<plan::PartMove>& moves(const Facts& facts);
  Decision joining(const Facts& facts);

  const net::NodeId self_;
  const std::uint32_t parts_;
  const std::vector<double> work_;
  // Of a block, and for a while: what counts as asleep or arriving changes with time.
  struct Found {
    std::uint64_t height = 0;
    MonotonicTime at{};
    std::vector<plan::PartMove> moves;
  };
  std::optional<Found> found_;
  std::optional<std::uint32_t> begins_with_;  // before it is a member
  std::optional<Turn> turn_;                  // since when the plan names this node
};

}  // namespace neuroshard::runtime
