// Scenarios of `neuroshardd simulate`: what happens to a population that trains together, and what must hold
// all the same. The nodes, the codecs and the aggregation are those that real nodes run.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/cancel.h"
#include "core/base/expected.h"
#include "core/outer/codec.h"
#include "core/rounds/sync.h"

namespace neuroshard::sim {

struct ScenarioInfo {
  std::string_view name;
  std::string_view what;
};
// In the order of --list.
const std::vector<ScenarioInfo>& scenarios();

inline constexpr std::size_t least_scenario_nodes = 4, most_scenario_nodes = 16'384;

struct ScenarioOptions {
  std::string name = "clean";
  std::size_t nodes = 8;
  std::uint64_t seed = 1;
  std::uint32_t rounds = 12;
  std::uint32_t inner_steps = 25;  // H
  outer::CodecOptions codec;
  rounds::SyncChoice sync;    // fragments: where nobody is Byzantine, and not with the sparse codecs
  double loss = 0;            // of messages, besides what the scenario does
  bool plain_mean = false;    // aggregate without defence: what the rules are for
  std::size_t byzantine = 0;  // 0: a quarter, in scenarios that have any
  CancelToken stop = {};
};

struct ScenarioResult {
  std::uint64_t rounds = 0, blocks = 0;
  double first_loss = 0, last_loss = 0;  // held out, of the certified anchors
  std::vector<double> losses;            // after each round
  double delta_cosine = 0;  // mean over pairs of honest deltas of the first round; 0 with fragments
  std::uint64_t conflicts = 0;
  std::uint64_t counted_twice = 0;
  std::uint64_t wrong_anchors = 0;
  double hash_agreement_rate = 0;  // at the end, of running honest nodes
  std::uint64_t contributions = 0, byzantine_counted = 0, rows_carried = 0;
  std::uint64_t provisional = 0;  // honest nodes that trained on alone in a cut
  std::uint64_t anchors_fetched = 0, evidence = 0, expelled = 0;
  std::uint64_t refused = 0;                                      // answers that Byzantine nodes got
  std::vector<std::pair<std::string, std::uint64_t>> refused_by;  // reasons that occurred
  std::uint64_t messages = 0, bytes = 0, lost = 0, events = 0;
  double virtual_seconds = 0;
  double waiting_share = 0;  // of the time of honest nodes that run at the end, since their start
  std::size_t byzantine = 0;
  std::vector<std::string> broken;  // invariants, in words; empty: all held
};

// Same options, same result, on every machine.  InvalidArgument: no such scenario, or options out of range;
// Cancelled: by `stop`.
Expected<ScenarioResult> run_scenario(const ScenarioOptions& options);

}  // namespace neuroshard::sim
