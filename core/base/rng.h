// Deterministic random numbers: xoshiro256** (Blackman, Vigna 2018). The stream is part of the protocol
// (batches, initial weights), so the algorithm and the derivations below never change. Not for secrets: see
// crypto/entropy.h.
#pragma once

#include <array>
#include <cstdint>

#include "core/base/bytes.h"

namespace neuroshard {

class Rng {
 public:
  using State = std::array<std::uint64_t, 4>;

  // Expands a 64-bit seed by SplitMix64, as the authors recommend.
  explicit Rng(std::uint64_t seed);
  // The 32 bytes are the state, little-endian; all zero is replaced by Rng(0).
  explicit Rng(const Hash256& seed);
  static Rng from_state(const State& state);

  std::uint64_t next();
  // Uniform in [0, bound), bound ≥ 1; unbiased (Lemire 2019).
  std::uint64_t below(std::uint64_t bound);
  // Uniform in [0, 1) with 53 bits.
  double uniform();
  // Approximately standard normal with bounded tails (|x| < 6): the sum of twelve uniforms, in exact integer
  // arithmetic, so the same bits come out on every machine and libm.
  float normal();

  const State& state() const { return state_; }

 private:
  State state_{};
};

}  // namespace neuroshard
