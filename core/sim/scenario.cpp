#include "core/sim/scenario.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/sim/scenario_run.h"

namespace neuroshard::sim {
namespace {

Expected<void> check_name(const ScenarioOptions& options) {
  const auto& all = scenarios();
  if (std::any_of(all.begin(), all.end(), [&](const auto& s) { return s.name == options.name; })) return {};
  std::string names;
  for (const ScenarioInfo& s : all) names += fmt::format("{}{}", names.empty() ? "" : ", ", s.name);
  return make_error(ErrorCode::InvalidArgument,
                    fmt::format("there is no scenario \"{}\"; there are {}", options.name, names));
}

Expected<void> check(const ScenarioOptions& options) {
  NS_RETURN_IF_ERROR(check_name(options));
  if (options.nodes < least_scenario_nodes || options.nodes > most_scenario_nodes || options.rounds < 1 ||
      options.rounds > 10'000 || options.inner_steps < 1 || options.inner_steps > 10'000 ||
      options.loss < 0 || options.loss > 0.9 || 3 * byzantine_of(options) >= options.nodes)
    return make_error(ErrorCode::InvalidArgument,
                      fmt::format("a simulation takes {} to {} nodes, 1 to 10,000 rounds and steps, a loss "
                                  "of 0 to 0.9, and fewer Byzantine nodes than a third",
                                  least_scenario_nodes, most_scenario_nodes));
  if (options.sync.fragments == 1) return {};
  const bool sparse =
      options.codec.codec == outer::Codec::TopK || options.codec.codec == outer::Codec::SeedTopK;
  if (sparse || byzantine_of(options) > 0 || options.sync.fragments > options.inner_steps)
    return make_error(ErrorCode::InvalidArgument,
                      "simulated fragments take a dense codec, at least as many inner steps as fragments, "
                      "and a scenario without Byzantine nodes");
  return {};
}

}  // namespace

const std::vector<ScenarioInfo>& scenarios() {
  static const std::vector<ScenarioInfo> all = {
      {"clean", "nothing happens"},
      {"churn", "one node is killed in the middle of a round and back in the next, another each time"},
      {"lossy", "30 % of all messages are lost"},
      {"partition", "the network is cut in two halves for five rounds, then healed"},
      {"night", "most nodes say that they go, one goes without a word; all are back in the morning"},
      {"leader-killed", "each leader dies while it proposes and comes back a round later"},
      {"late-joiner", "a node joins in the fourth round, with a voucher"},
      {"corrupted-replica", "the memory of one node changes its anchor in the fifth round"},
      {"slow-node", "one node computes at a quarter of the others' speed"},
      {"silent-joiners", "joiners register, then send nothing more"},
      {"sign-flip", "Byzantine nodes send minus the honest mean"},
      {"sign-flip-10", "Byzantine nodes send minus ten times the honest mean"},
      {"alie", "Byzantine nodes hide a little below the honest spread"},
      {"inner-product", "inner-product manipulation"},
      {"gaussian", "Byzantine nodes send strong noise"},
      {"zero", "Byzantine nodes send nothing, for full credit"},
      {"mimic", "Byzantine nodes repeat one honest node"},
      {"nan", "Byzantine nodes send what is no number"},
      {"inflated-tokens",
       "Byzantine nodes send minus the honest mean and claim the most tokens that a round allows"},
      {"sybil", "Byzantine nodes send one random direction, all the same"},
      {"two-payloads", "Byzantine nodes send different deltas to different members"},
      {"replay", "Byzantine nodes send what they heard again in later rounds"},
      {"stale-base", "Byzantine nodes send contributions that name another opening block"},
      {"copied-delta", "Byzantine nodes send another node's delta as theirs"},
      {"view-jump", "Byzantine nodes claim views that nobody is in, and never propose"},
      {"false-proof", "Byzantine nodes bring made-up evidence against the others"},
      {"false-votes", "Byzantine nodes vote for blocks that nobody proposed, for many at once"},
  };
  return all;
}

Expected<ScenarioResult> run_scenario(const ScenarioOptions& options) {
  NS_RETURN_IF_ERROR(check(options));
  return ScenarioRun(options).run();
}

}  // namespace neuroshard::sim
