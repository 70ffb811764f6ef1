// When a driver moves to its next shard, decided at a round start (docs/protocol/data.md): the shard is used
// up, or the loss has stopped improving on it.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "core/base/span.h"

namespace neuroshard::data {

inline constexpr std::uint32_t max_rotation_window = 4096;

struct RotationRule {
  std::uint32_t window = 50;           // losses looked at; even
  double minimum_improvement = 0.005;  // of the first half's mean, by the second half's
  std::uint64_t minimum_steps = 100;   // on this shard before a plateau counts
};

enum class RotationReason : std::uint8_t { Stay, UsedUp, Plateau, Drawn };  // Drawn: by a new beacon
std::string_view to_string(RotationReason reason);

struct ShardProgress {
  std::uint64_t steps = 0;           // made on this shard
  std::uint64_t tokens = 0;          // consumed on this shard
  std::uint64_t shard_tokens = 0;    // it has
  std::vector<float> recent_losses;  // the newest last, at most RotationRule::window
};

// Relative improvement between the halves of the window, (first − second) / |first|; 0 when the window is not
// full.
double window_improvement(Span<const float> losses);

RotationReason should_rotate(const ShardProgress& progress, const RotationRule& rule = {});

}  // namespace neuroshard::data
