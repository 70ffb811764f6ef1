// NEURO amounts: integers of 1e-8, overflow-checked, never floating point (docs/protocol/identity.md).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/base/expected.h"

namespace neuroshard {

class Amount {
 public:
  static constexpr std::int64_t units_per_neuro = 100'000'000;

  constexpr Amount() = default;
  static constexpr Amount from_units(std::int64_t units) {
    Amount a;
    a.units_ = units;
    return a;
  }
  // "12", "12.5", "0.00000001"; at most 8 decimals, no exponent, no sign. InvalidArgument otherwise.
  static Expected<Amount> parse(std::string_view text);

  constexpr std::int64_t units() const { return units_; }
  // Shortest exact decimal: "12.5".
  std::string to_string() const;

  // Exhausted on overflow.
  Expected<Amount> plus(Amount other) const;
  Expected<Amount> minus(Amount other) const;
  // units * numerator / denominator, rounded down; denominator > 0.
  Expected<Amount> scaled(std::int64_t numerator, std::int64_t denominator) const;

  friend constexpr bool operator==(Amount a, Amount b) { return a.units_ == b.units_; }
  friend constexpr bool operator<(Amount a, Amount b) { return a.units_ < b.units_; }

 private:
  std::int64_t units_ = 0;
};

}  // namespace neuroshard
