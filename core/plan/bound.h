// A throughput that no plan can exceed, and why.
//
// Let a plan serve λ tokens/s, and look at a segment T of the chain, with work w(T). Peer p holds a range R, and its
// tokens may pass any part of R. In one second p
//   (a) computes at most speed(p) of work;
//   (b) serves each unit for at most λ tokens, so its work in T is at most λ·w(R ∩ T);
//   (c) carries at most line(p) bytes. A token that enters at one unit of R and leaves at another crosses as many
//       boundaries as that part has ends inside the model; no part of R has more work in T per crossing than R itself.
//       So its work in T is at most w(R ∩ T)·line(p) / (crossings(R)·boundary bytes); without crossings there is no limit.
// All work in T together is λ·w(T), so with the best range for each peer separately,
//   λ·w(T) ≤ Σ_p max over ranges R that fit p of min{(a), (b), (c)}.
// The right side is concave in λ and 0 at 0, so the λ that satisfy this are an interval from 0, and its end is found by
// bisection. The bound is the least of these ends over the segments looked at: the whole chain, each unit, each prefix
// and each suffix, and the chain without as many units at both ends. It holds for plans of any form, with one owner per
// unit or more.
#pragma once

#include <string>
#include <vector>

#include "core/plan/chain.h"

namespace neuroshard::plan {

struct Bound {
  double throughput = 0;  // tokens/s
  UnitRange segment;      // the segment that gives it
};
// usable: bytes of each peer's memory for ranges. Both lists have the same length.
Bound throughput_bound(const Chain& chain, const std::vector<PlanPeer>& peers,
                       const std::vector<std::uint64_t>& usable);

}  // namespace neuroshard::plan
