// Attacks on the values of deltas in scenarios: the attackers know what honest nodes are about to send.
#pragma once

#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "core/outer/attack.h"
#include "core/sim/round_trainer.h"

namespace neuroshard::sim {

std::optional<outer::Attack> attack_of(std::string_view scenario);
// Over all pairs; 0 without any.
double mean_cosine(const std::vector<std::vector<float>>& deltas);

class ValueAttack {
 public:
  using HonestDeltas = std::function<std::vector<std::vector<float>>()>;
  // tokens: that an honest contributor claims.
  ValueAttack(outer::Attack attack, std::size_t byzantine, std::uint64_t tokens,
              outer::AggregationOptions rule, std::uint64_t seed, HonestDeltas honest);
  // Of the attacker with this index. This object outlives it.
  RoundTrainer::Distortion distortion(std::size_t index);

 private:
  void forge(std::uint64_t round);

  const outer::Attack attack_;
  const std::size_t byzantine_;
  const std::uint64_t tokens_;
  const outer::AggregationOptions rule_;
  const std::uint64_t seed_;
  const HonestDeltas honest_;
  std::optional<std::uint64_t> round_;  // that forged_ is for
  std::vector<outer::ForgedDelta> forged_;
};

}  // namespace neuroshard::sim
