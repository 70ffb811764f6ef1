// Scenarios of `neuroshardd simulate`: what happens to a population that trains together, and what must hold
// all the same. The round nodes, the codecs and the aggregation are those that real nodes run.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/cancel.h"
#include "core/base/expected.h"
#include "core/outer/codec.h"
#include "core/rounds/messages.h"
#include "core/rounds/sync.h"

namespace neuroshard::sim {

struct ScenarioInfo {
  std::string_view name;
  std::string_view what;
};
// In the order of --list.
const std::vector<ScenarioInfo>& scenarios();

struct ScenarioOptions {
  std::string name = "clean";
  // 4 … 16,384. Beyond 16 rounds have two levels (SPEC §7), but up to 64 nodes can be one group.
  std::size_t nodes = 8;
  bool one_group = false;
  std::uint64_t seed = 1;
  std::uint32_t rounds = 12;
  std::uint32_t inner_steps = 25;  // H
  outer::CodecOptions codec;
  rounds::RoundSync sync = rounds::RoundSync::Plain;
  double loss = 0;          // of messages, besides what the scenario does
  bool plain_mean = false;  // aggregate without defence: what the rules are for
  std::size_t liars = 0;    // 0: a quarter, in scenarios that have any
  CancelToken stop = {};
};

struct ScenarioResult {
  std::uint64_t rounds = 0;
  double first_loss = 0, last_loss = 0;  // held out, of the certified anchor
  std::vector<double> losses;            // after each round
  double delta_cosine = 0;  // mean over pairs of honest deltas of the first round that all took part in
  std::uint64_t conflicts = 0;
  std::uint64_t counted_twice = 0;
  double hash_agreement_rate = 0;  // at the end, of running honest nodes
  double worst_agreement = 0;      // of any round
  std::uint64_t contributions = 0, liars_counted = 0;
  std::uint64_t provisional = 0, corruptions = 0, anchors_fetched = 0, evidence = 0;
  std::uint64_t refused = 0;                                      // posts, by honest nodes
  std::vector<std::pair<std::string, std::uint64_t>> refused_by;  // reasons that occurred
  std::uint64_t messages = 0, bytes = 0, lost = 0, events = 0;
  double virtual_seconds = 0;
  double waiting_share = 0;  // of the time of honest nodes that run at the end, since their start
  std::size_t liars = 0;
  // Of two levels; what they cost.
  std::size_t groups = 0, group_results = 0;  // sub-groups dealt, and how many were in bodies, of all rounds
  std::size_t certificate_bytes = 0;          // of the newest
  bool shared = false;              // what all nodes derive alike was computed once (shared_commons.h)
  std::vector<std::string> broken;  // invariants, in words; empty: all held
};

// Same options, same result, on every machine.  InvalidArgument: no such scenario, or sizes out of range;
// Cancelled: by `stop`.
Expected<ScenarioResult> run_scenario(const ScenarioOptions& options);

}  // namespace neuroshard::sim
