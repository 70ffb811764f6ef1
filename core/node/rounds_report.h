// The outer rounds and the network's training in detail, for people: the contributors of each round, members
// that were late or did not count and why, and each node's report about itself. Plain values, bounded; the
// summary is in the snapshot (RoundsView).
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/base/clock.h"
#include "core/base/expected.h"

namespace neuroshard::node {

inline constexpr std::size_t max_round_entries = 32;
inline constexpr std::size_t max_round_members_shown = 128;  // of one round
inline constexpr std::size_t max_training_nodes = 256;
inline constexpr std::size_t max_global_losses = 512;
inline constexpr std::size_t max_refused_reasons = 64;

// One member of a round, as the chain's blocks name it.
struct RoundMemberEntry {
  std::string id;  // 64 hex characters
  bool mine = false;
  bool contributed = false;
  std::uint32_t steps = 0;
  std::uint64_t tokens = 0;     // as it declared
  std::optional<double> share;  // in the round's step; unknown where this node did not compute it
  std::string
      note;  // why it is not in the round or does not count: "late: …", "left out: …"; empty = counted
};
struct RoundEntry {
  std::uint64_t round = 0;
  WallTime at{};                 // when this node had it
  std::uint64_t step = 0;        // of this node's training at that time; 0 = unknown
  double seconds = 0;            // since the round before; 0 = unknown
  double waited = 0;             // of them this node's training stood still for the round
  std::string anchor;            // hash, 64 hex characters
  bool fetched = false;          // this node did not compute it but fetched it
  std::string rule;              // "weighted-mean"; empty = unknown
  bool too_few_to_vote = false;  // 2 to 4 contributions: a Byzantine peer can't be outvoted
  std::uint64_t tokens = 0;      // of all rounds so far
  std::uint32_t members = 0, contributors = 0;
  std::vector<RoundMemberEntry> who;  // contributors first; max_round_members_shown at most
};

// The report of one node about itself, signed by it, at most a few minutes old.
struct TrainingNodeEntry {
  std::string id;      // 64 hex characters
  std::string wallet;  // 16 hex characters; empty = it works for none
  bool mine = false;
  bool counts = false;  // in the medians: a member, and with a wallet where others have one
  bool training = false;
  std::uint64_t round = 0;
  std::string anchor;          // hash of its anchor of that round, as it computed it; empty = none yet
  std::optional<bool> agrees;  // with the anchor of the majority; unknown = nothing to compare
  std::optional<double> loss;
  std::uint32_t tokens_per_second = 0;
  std::uint64_t steps = 0;
  std::uint32_t contributed = 0;
  std::uint32_t synced = 0, missed = 0;  // of its latest rounds
  std::optional<std::uint32_t> shard;
  WallTime at{};  // when it was reported
};

struct GlobalLossPoint {
  std::uint64_t round = 0;
  double loss = 0;  // the network loss
};
struct RefusedEntry {
  std::string reason;  // "from another anchor"
  std::uint64_t count = 0;
};

struct RoundsReport {
  bool taking_part = false;              // false: the node trains for itself, and all the rest is empty
  std::vector<RoundEntry> rounds;        // newest first
  std::vector<TrainingNodeEntry> nodes;  // this node first
  std::vector<GlobalLossPoint> losses;   // ascending
  std::vector<RefusedEntry> refused;     // posts of others that were refused, and why, since the start
};

// Cuts the lists to their limits. A maker of reports calls it last.
void bound(RoundsReport& report);

}  // namespace neuroshard::node
