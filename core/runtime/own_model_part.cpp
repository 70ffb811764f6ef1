#include "core/runtime/own_model_part.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "core/plan/architecture.h"
#include "core/plan/holder_speeds.h"

namespace neuroshard::runtime {
namespace {

constexpr std::uint32_t few_steps_of = 8;  // an eighth of a round's steps are few

node::PartReason reason_of(plan::MoveReason reason) {
  switch (reason) {
    case plan::MoveReason::NoHolder: return node::PartReason::NoHolder;
    case plan::MoveReason::OneWallet: return node::PartReason::OneWallet;
    case plan::MoveReason::SlowPart: return node::PartReason::SlowPart;
  }
  return node::PartReason::None;
}

}  // namespace

std::vector<double> part_work(const config::ConsensusPart& network) {
  std::vector<double> work;
  for (const compute::StageRange& range : config::model_parts(network))
    work.push_back(plan::range_work(config::model_shape(network), range));
  return work;
}

OwnModelPart::OwnModelPart(const config::DataDirectory& directory, storage::FileEnv& files,
                           const net::NodeId& self) {
  const config::ConsensusPart& network = directory.profile().consensus;
  model_grows_ = !network.sizes.empty();
  user_limit_ = first_limit_ = directory.settings().number(config::Setting::MemoryLimit);
  size_ = network.size;
  if (network.size < network.sizes.size())
    next_needs_ = static_cast<std::uint32_t>(network.sizes[network.size].member_tiers);
  auto part = config::own_part(directory, files);
  if (!part.ok() || !*part) return;  // what is wrong with the settings is said when the model is made
  first_ = *std::move(part);
  if (first_->follows_plan) moves_.emplace(self, part_work(network));
}

std::optional<std::uint32_t> OwnModelPart::part_of(const engine::RoundFacts& facts) const {
  return first_ ? std::optional(facts.own_part) : std::nullopt;
}

void OwnModelPart::take(const engine::RoundFacts& facts) {
  fitting_ = facts.parts_that_fit;
  memory_limit_ = facts.memory_limit;
  too_large_ = facts.too_large_size;
  held_ = part_of(facts);
}

bool OwnModelPart::has_more_to_offer() const {
  const auto tiers = [](std::uint64_t limit) {
    return limit == 0 ? std::numeric_limits<std::uint64_t>::max() : limit / plan::memory_tier_bytes;
  };
  return model_grows_ && tiers(user_limit_) > tiers(first_limit_);
}

std::optional<std::uint32_t> OwnModelPart::offered_tiers() const {
  if (memory_limit_ == 0) return std::nullopt;
  const std::uint64_t bytes = user_limit_ > 0 ? std::min(memory_limit_, user_limit_) : memory_limit_;
  const auto tiers = static_cast<std::uint32_t>(
      std::min<std::uint64_t>(bytes / plan::memory_tier_bytes, chain::most_memory_tiers));
  // By its own plan it could not train such a model, although the profile says that so much is enough.
  return !too_large_ || !next_needs_ ? tiers : std::min(tiers, *next_needs_ - 1);
}

void OwnModelPart::follow_plan(const ChainMoment& now, chain::ChainNode& node, engine::RoundTrainer& trainer,
                               node::PartView* view) {
  if (view != nullptr) view->follows_plan = follows_plan();
  if (!now.registry) return;
  node.want({wanted_rows(now, trainer, view), offered_tiers(), speed_});
}

std::optional<chain::RowSet> OwnModelPart::wanted_rows(const ChainMoment& now, engine::RoundTrainer& trainer,
                                                       node::PartView* view) {
  if (!moves_ || !held_) return std::nullopt;
  const bool trained = few_steps_of * trainer.view().work.steps > trainer.inner_steps();
  const PartMoves::Decision decision =
      moves_->decide({*now.registry, *held_, fitting_, now.at, now.wall, now.training.contributed, trained});
  if (decision.model) trainer.want_part(*decision.model);
  if (view != nullptr) {
    const auto to = decision.model ? decision.model : decision.wanted;
    if (to && *to != *held_) view->moves_to = *to + 1;
    if (decision.reason) view->reason = reason_of(*decision.reason);
  }
  return decision.wanted ? std::optional(chain::RowSet::of({*decision.wanted})) : std::nullopt;
}

}  // namespace neuroshard::runtime
