#include "core/data/rotation.h"

#include <cmath>

namespace neuroshard::data {

std::string_view to_string(RotationReason reason) {
  switch (reason) {
    case RotationReason::Stay: return "stay";
    case RotationReason::UsedUp: return "used up";
    case RotationReason::Plateau: return "plateau";
    case RotationReason::Drawn: return "drawn by the network";
  }
  return "stay";
}

double window_improvement(Span<const float> losses) {
  const std::size_t half = losses.size() / 2;
  if (half == 0) return 0;
  double first = 0;
  double second = 0;
  for (std::size_t i = 0; i < half; ++i) {
    first += losses[i];
    second += losses[half + i];
  }
  return first == 0 ? 0 : (first - second) / std::fabs(first);
}

RotationReason should_rotate(const ShardProgress& progress, const RotationRule& rule) {
  if (progress.tokens >= progress.shard_tokens) return RotationReason::UsedUp;
  if (progress.steps < rule.minimum_steps || progress.recent_losses.size() < rule.window) {
    return RotationReason::Stay;
  }
  const Span<const float> losses(progress.recent_losses);
  return window_improvement(losses.last(rule.window)) < rule.minimum_improvement ? RotationReason::Plateau
                                                                                 : RotationReason::Stay;
}

}  // namespace neuroshard::data
