// Warnings about the network's training for the user: rounds that stand still because members are away, nodes
// with other weights, rounds that do not count, damaged weights that were repaired. Each has its reason and
// what to do.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/status/summary.h"

namespace neuroshard::status {

inline constexpr double low_sync_success = 0.5;         // a rate at or below it is a warning
inline constexpr std::size_t least_rounds_to_warn = 4;  // the least number of rounds for that
inline constexpr std::size_t nodes_named = 3;
inline constexpr double voucher_patience_seconds = 3600;  // a warning comes after so long

// No quorum is in reach, so no round is certified and no contribution counts.
struct Standstill {
  std::uint64_t round = 0;              // that can't be certified
  std::size_t members = 0, needed = 0;  // for a quorum
  std::vector<net::NodeId> missing;     // the silent ones, as far as this node knows
  bool needs_person = false;  // so few are left that the others can't go on without them by themselves
};

// A round's contributions on this node's line, in one direction: the slower one.
struct LineNeed {
  std::uint64_t bytes = 0;      // at most, in a round; 0: no other member
  std::uint64_t line = 0;       // bytes per second, as measured, or as the user limits it; 0: not known
  double training_seconds = 0;  // of a round, at this node's pace; 0: not known
};
// This node's part in the rounds.
struct OwnRounds {
  net::NodeId self{};
  std::size_t synced = 0, missed = 0;  // its latest rounds
  std::string left_out_reason;         // of the newest round that did not count
  std::string trouble;                 // the reason why it takes no part
  std::uint64_t repairs = 0;           // of its anchor, since the start; 0: none to report
  std::optional<Standstill> standstill;
  LineNeed need{};
  double voucher_awaited_seconds = 0;  // this candidate lacks nothing but a voucher, for so long
  std::size_t other_histories = 0;     // peers that hold another history of this network
  bool asks_succession = false;        // this node's person decides whether it goes on with others
};
struct Warning {
  // "rounds_standstill", "rounds_agreement", "rounds_sync", "rounds_repaired", "rounds_trouble",
  // "rounds_line", "rounds_voucher", "rounds_history", "rounds_succession"
  std::string key;
  std::string text;
};
std::vector<Warning> warnings_of(const Summary& summary, const OwnRounds& own);

}  // namespace neuroshard::status
