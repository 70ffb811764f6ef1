// fragments(P) (SPEC §7; Streaming DiLoCo, Douillard et al. 2025): the parameters in P parts of nearly the
// same length, each a slot with rounds, certificates and anchors of its own, and so with a RoundNode of its
// own. All parts train all the time; their boundaries lie H/P steps apart, so that a P-th of the bytes
// travels P times as often.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/base/span.h"
#include "core/net/peer_caller.h"
#include "core/rounds/certificate.h"

namespace neuroshard::rounds {

inline constexpr std::size_t max_fragments = 64;

struct Fragment {
  RoundSlot slot;           // Model, with the part's number as layer
  std::uint64_t first = 0;  // its first value
  std::uint64_t count = 0;
  std::uint32_t first_steps = 0;  // of its first round; later ones have H
};
// 1 ≤ parts ≤ max_fragments, values and inner_steps; cuts lie on multiples of the codec's chunk where there
// are enough values for that.
std::vector<Fragment> cut_fragments(std::uint64_t values, std::size_t parts, std::uint32_t inner_steps);

// Which slot's node a call is for, as it says; nothing: no call of rounds, or it says none. Looks at the
// slot's bytes only: the rest is for the node to judge. Any bytes are safe.
std::optional<RoundSlot> slot_of_call(net::Method method, ByteSpan request);

}  // namespace neuroshard::rounds
