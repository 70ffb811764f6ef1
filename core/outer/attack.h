// The attacks of the literature on the values of an outer round's deltas. (Replays, stale bases, equivocation
// and copied bytes are attacks on the protocol.) For simulations and tests of the
// defence.
//
// Sources: ALIE, "a little is enough" (Baruch et al. 2019); inner-product manipulation, IPM (Xie et al.
// 2020); mimic (Karimireddy et al. 2022). ALIE and IPM search the factor that hurts the given rule most,
// knowing everything that the honest send: the strongest form.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "core/base/expected.h"
#include "core/base/rng.h"
#include "core/base/span.h"
#include "core/outer/aggregate.h"

namespace neuroshard::outer {

enum class Attack : std::uint8_t {
  SignFlip,        // minus the honest mean
  SignFlipTen,     // ten times that
  Alie,            // honest mean ± z·deviation, by coordinate
  InnerProduct,    // −e·honest mean
  Gaussian,        // noise ten times as strong as the honest deltas
  Zero,            // nothing, for full credit
  Mimic,           // all attackers repeat the first honest contributor
  NotANumber,      // one NaN
  InflatedTokens,  // minus the honest mean, claiming 10^12 tokens
  Sybil,           // one random direction of honest length, bit for bit the same from all
};
inline constexpr Attack all_attacks[] = {
    Attack::SignFlip, Attack::SignFlipTen, Attack::Alie,       Attack::InnerProduct,   Attack::Gaussian,
    Attack::Zero,     Attack::Mimic,       Attack::NotANumber, Attack::InflatedTokens, Attack::Sybil};
std::string_view to_string(Attack attack);  // "sign-flip", "sign-flip-10", "alie", …
// InvalidArgument, with the names there are.
Expected<Attack> attack_from_name(std::string_view name);

struct ForgedDelta {
  std::vector<float> delta;
  std::uint64_t tokens = 0;
};

// honest: what the honest contributors send, as far as the attackers know it; at least one, [P] each. tokens:
// what an honest contributor declares. rule: what has to be beaten, with ids as the aggregation will see them
// when attackers come after the honest. Returns `attackers` deltas.
// Cost: about 25 aggregations for ALIE and IPM, else O(P).  Threads: any.
std::vector<ForgedDelta> forge(Attack attack, const std::vector<Span<const float>>& honest,
                               std::size_t attackers, std::uint64_t tokens, const AggregationOptions& rule,
                               Rng& rng);

}  // namespace neuroshard::outer
