#include "core/base/rng.h"

#include "core/base/check.h"

namespace neuroshard {
namespace {

std::uint64_t split_mix(std::uint64_t& x) {
  std::uint64_t z = (x += 0x9e3779b97f4a7c15u);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

std::uint64_t rotate_left(std::uint64_t x, int k) {
  return (x << k) | (x >> (64 - k));
}

__extension__ using Uint128 = unsigned __int128;

}  // namespace

Rng::Rng(std::uint64_t seed) {
  for (std::uint64_t& word : state_) word = split_mix(seed);
}

Rng::Rng(const Hash256& seed) {
  std::uint64_t any = 0;
  for (std::size_t i = 0; i < state_.size(); ++i)
    any |= state_[i] = load_le<std::uint64_t>(seed.data() + 8 * i);
  if (any == 0) *this = Rng(0);
}

Rng Rng::from_state(const State& state) {
  Rng rng(0);
  rng.state_ = state;
  return rng;
}

std::uint64_t Rng::next() {
  const std::uint64_t result = rotate_left(state_[1] * 5, 7) * 9;
  const std::uint64_t t = state_[1] << 17;
  state_[2] ^= state_[0];
  state_[3] ^= state_[1];
  state_[1] ^= state_[2];
  state_[0] ^= state_[3];
  state_[2] ^= t;
  state_[3] = rotate_left(state_[3], 45);
  return result;
}

std::uint64_t Rng::below(std::uint64_t bound) {
  NS_CHECK(bound > 0);
  Uint128 product = static_cast<Uint128>(next()) * bound;
  auto low = static_cast<std::uint64_t>(product);
  if (low < bound) {
    const std::uint64_t threshold = (0 - bound) % bound;
    while (low < threshold) {
      product = static_cast<Uint128>(next()) * bound;
      low = static_cast<std::uint64_t>(product);
    }
  }
  return static_cast<std::uint64_t>(product >> 64);
}

double Rng::uniform() {
  return static_cast<double>(next() >> 11) * 0x1.0p-53;
}

float Rng::normal() {
  std::int64_t sum = 0;
  for (int i = 0; i < 6; ++i) {
    const std::uint64_t word = next();
    sum += static_cast<std::int64_t>(word & 0xffffffffu) + static_cast<std::int64_t>(word >> 32);
  }
  const std::int64_t centred = sum - 6 * std::int64_t{0xffffffff};
  return static_cast<float>(static_cast<double>(centred) * 0x1.0p-32);
}

}  // namespace neuroshard
