#include "core/sim/scenario_lies.h"

#include <cmath>

namespace neuroshard::sim {

std::optional<Lie> lie_of(std::string_view name) {
  if (name == "two-payloads") return Lie::TwoPayloads;
  if (name == "replay") return Lie::Replay;
  if (name == "stale-base") return Lie::StaleBase;
  if (name == "copied-delta") return Lie::CopiedDelta;
  if (name == "view-jump") return Lie::ViewJump;
  if (name == "false-proof") return Lie::FalseProof;
  if (name == "false-votes") return Lie::FalseVotes;
  return std::nullopt;
}

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

}  // namespace neuroshard::sim
