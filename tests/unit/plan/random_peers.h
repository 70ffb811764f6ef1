// Chains and heterogeneous peers for tests and the benchmark of core/plan.
#pragma once

#include <cmath>
#include <string>
#include <vector>

#include "core/base/rng.h"
#include "core/plan/placeable.h"

namespace neuroshard::plan::test {

inline constexpr std::uint64_t gigabyte = 1'000'000'000;
inline constexpr double megabit = 125'000;  // bytes/s

inline GrowthRules mainnet_rules() {
  GrowthRules rules;
  compute::ModelShape& shape = rules.minimum;
  shape.layers = 8;
  shape.hidden = 512;
  shape.head_dim = 128;
  shape.heads = 4;
  shape.kv_heads = 1;
  shape.ffn = 2048;
  shape.experts = 8;
  shape.experts_per_token = 2;
  shape.vocab = 32768;
  shape.sequence = 512;
  rules.batch_tokens = 2048;
  return rules;
}

// int8 activations, as on the wire.
inline Chain chain_of(const GrowthRules& rules, const compute::ModelShape& shape) {
  return Chain::of_shape(rules, shape, shape.hidden).value();
}

// Volunteers' computers: memory of 4 to 64 GB, from old notebooks to fast GPUs, lines of 10 to 1000 Mbit/s up.
struct PeerKind {
  double speed_spread = 3;                   // decades between the slowest and the fastest
  double line_least = 10, line_most = 1000;  // Mbit/s
  std::uint32_t peers_per_owner = 1;
};

inline std::vector<PlanPeer> random_peers(Rng& rng, std::size_t count, const PeerKind& kind = {}) {
  constexpr std::uint64_t memories[] = {4, 6, 8, 8, 12, 16, 16, 24, 32, 64};
  std::vector<PlanPeer> peers(count);
  for (std::size_t i = 0; i < count; ++i) {
    PlanPeer& peer = peers[i];
    peer.id = "node" + std::to_string(10'000 + i);
    peer.owner = "owner" + std::to_string(i / kind.peers_per_owner);
    peer.memory = memories[rng.below(10)] * gigabyte;
    // Rounded: the last bit of pow() depends on the processor.
    peer.speed = 1e6 * std::round(5e4 * std::pow(10.0, kind.speed_spread * rng.uniform() * rng.uniform()));
    peer.up =
        std::round(megabit * kind.line_least * std::pow(kind.line_most / kind.line_least, rng.uniform()));
    peer.down = std::round(peer.up * (1 + 4 * rng.uniform()));
  }
  return peers;
}

// The largest shape of which these peers can hold enough copies, although many may not fit a layer of it.
inline compute::ModelShape shape_for(const GrowthRules& rules, const std::vector<PlanPeer>& peers) {
  const auto chain = [&](const compute::ModelShape& shape) {
    return Chain::of_shape(rules, shape, shape.hidden);
  };
  PlanOptions options;
  options.useful_share = 0;
  return placeable_shape(rules, peers, options, chain).shape;
}

}  // namespace neuroshard::plan::test
