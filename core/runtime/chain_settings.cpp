#include "core/runtime/chain_settings.h"

#include <algorithm>

#include "core/rounds/sync.h"
#include "core/runtime/round_rules.h"

namespace neuroshard::runtime {
namespace {

constexpr Duration least_silence = std::chrono::seconds(30);
constexpr Duration least_heartbeat = std::chrono::seconds(10), most_heartbeat = std::chrono::seconds(60);

}  // namespace

std::vector<chain::SizeNeeds> size_needs(const config::ConsensusPart& consensus) {
  std::vector<chain::SizeNeeds> needs;
  for (const config::ModelGrowth& size : consensus.sizes)
    needs.push_back(
        {static_cast<std::uint32_t>(size.member_tiers), static_cast<std::uint32_t>(size.network_tiers)});
  return needs;
}

chain::ChainRules chain_rules(const config::ConsensusPart& consensus, const Hash256& network) {
  const auto sync = rounds::sync_choice(consensus.sync).value_or(rounds::SyncChoice{});
  chain::ChainRules rules;
  rules.network = network;
  rules.voters = static_cast<chain::VotersMode>(consensus.voters);
  rules.founders = config::founder_keys(consensus);
  rules.rows = sync.fragments * sync.parts;  // one of them is 1
  rules.fragments = sync.fragments;
  rules.sizes = size_needs(consensus);
  rules.most_tokens = consensus.inner_steps * consensus.batch_tokens;
  rules.admission_contributions = static_cast<std::uint32_t>(consensus.admission_contributions);
  rules.block_time = std::chrono::seconds(consensus.block_time_s);
  rules.stall_after = std::chrono::seconds(consensus.stall_after_s);
  rules.silent_after = std::max<Duration>(least_silence, 3 * rules.block_time);
  rules.heartbeat = std::clamp<Duration>(rules.block_time, least_heartbeat, most_heartbeat);
  return rules;
}

chain::ChainOptions chain_options(const ChainFacts& facts, const crypto::Delegation& delegation,
                                  std::vector<Hash256> anchors) {
  chain::ChainOptions options;
  options.rules = chain_rules(facts.consensus, facts.network);
  options.rows = facts.rows;
  options.follows_plan = facts.follows_plan;
  options.vouch_on_loopback = facts.one_lan;
  options.delegation = delegation;
  options.model = {std::move(anchors), facts.tokenizer};
  return options;
}

rounds::TrainingOptions training_options(const ChainFacts& facts) {
  rounds::TrainingOptions options;
  options.chain = chain_rules(facts.consensus, facts.network);
  options.rows = facts.rows;
  options.size = static_cast<std::uint32_t>(facts.consensus.size);
  options.outer = outer_rules(facts.consensus, facts.tokenizer);
  options.clock.first_deadline /= static_cast<std::int64_t>(options.chain.fragments);
  for (const rounds::Fragment& fragment : facts.fragments)
    options.shapes.push_back({fragment.row, fragment.first, fragment.count});
  options.inner_steps = static_cast<std::uint32_t>(facts.consensus.inner_steps);
  options.sync = rounds::sync_choice(facts.consensus.sync).value_or(rounds::SyncChoice{}).each;
  return options;
}

}  // namespace neuroshard::runtime
