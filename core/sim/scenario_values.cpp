#include "core/sim/scenario_values.h"

#include <algorithm>
#include <cmath>

namespace neuroshard::sim {

std::optional<outer::Attack> attack_of(std::string_view name) {
  const auto attack = outer::attack_from_name(name);
  return attack.ok() ? std::optional(*attack) : std::nullopt;
}

double mean_cosine(const std::vector<std::vector<float>>& deltas) {
  double sum = 0;
  std::size_t pairs = 0;
  for (std::size_t i = 0; i < deltas.size(); ++i) {
    for (std::size_t j = i + 1; j < deltas.size(); ++j) {
      double ab = 0, aa = 0, bb = 0;
      for (std::size_t k = 0; k < deltas[i].size() && k < deltas[j].size(); ++k) {
        ab += double(deltas[i][k]) * deltas[j][k];
        aa += double(deltas[i][k]) * deltas[i][k];
        bb += double(deltas[j][k]) * deltas[j][k];
      }
      if (aa > 0 && bb > 0) sum += ab / std::sqrt(aa * bb), ++pairs;
    }
  }
  return pairs == 0 ? 0 : sum / static_cast<double>(pairs);
}

ValueAttack::ValueAttack(outer::Attack attack, std::size_t byzantine, std::uint64_t tokens,
                         outer::AggregationOptions rule, std::uint64_t seed, HonestDeltas honest)
    : attack_(attack),
      byzantine_(byzantine),
      tokens_(tokens),
      rule_(std::move(rule)),
      seed_(seed),
      honest_(std::move(honest)) {}

RoundTrainer::Distortion ValueAttack::distortion(std::size_t index) {
  return [this, index](std::uint64_t round, Span<float> delta, std::uint64_t* tokens) {
    forge(round);
    if (forged_.empty()) return;
    const outer::ForgedDelta& forged = forged_[index % forged_.size()];
    std::copy(forged.delta.begin(), forged.delta.end(), delta.begin());
    *tokens = forged.tokens;
  };
}

// One set a round: the attackers act together.
void ValueAttack::forge(std::uint64_t round) {
  if (round == round_) return;
  round_ = round;
  std::vector<std::vector<float>> deltas = honest_();
  std::erase_if(deltas, [](const std::vector<float>& delta) { return delta.empty(); });
  std::vector<Span<const float>> honest;
  for (const auto& delta : deltas) honest.emplace_back(delta);
  forged_.clear();
  if (honest.empty()) return;
  Rng rng(seed_ * 31 + round);
  forged_ = outer::forge(attack_, honest, byzantine_, tokens_, rule_, rng);
}

}  // namespace neuroshard::sim
