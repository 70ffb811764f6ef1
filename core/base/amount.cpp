#include "core/base/amount.h"

#include <limits>

namespace neuroshard {
namespace {

__extension__ using Int128 = __int128;

Error overflow() {
  return make_error(ErrorCode::Exhausted, "amount is out of range");
}
Error malformed() {
  return make_error(ErrorCode::InvalidArgument,
                    "not an amount of NEURO: write digits, at most 8 of them after a point, such as 12.5");
}

}  // namespace

Expected<Amount> Amount::parse(std::string_view text) {
  const std::size_t point = text.find('.');
  const std::string_view whole = text.substr(0, point);
  const std::string_view fraction =
      point == std::string_view::npos ? std::string_view{} : text.substr(point + 1);
  if (whole.empty() || fraction.size() > 8 || (point != std::string_view::npos && fraction.empty()))
    return malformed();
  std::int64_t units = 0;
  auto push = [&](char c) {
    return !__builtin_mul_overflow(units, 10, &units) && !__builtin_add_overflow(units, c - '0', &units);
  };
  for (const std::string_view part : {whole, fraction}) {
    for (const char c : part) {
      if (c < '0' || c > '9') return malformed();
      if (!push(c)) return overflow();
    }
  }
  for (std::size_t i = fraction.size(); i < 8; ++i) {
    if (!push('0')) return overflow();
  }
  return from_units(units);
}

std::string Amount::to_string() const {
  const bool negative = units_ < 0;
  const std::uint64_t magnitude =
      negative ? 0 - static_cast<std::uint64_t>(units_) : static_cast<std::uint64_t>(units_);
  std::string text = (negative ? "-" : "") + std::to_string(magnitude / units_per_neuro);
  const std::uint64_t rest = magnitude % units_per_neuro;
  if (rest != 0) {
    std::string decimals = std::to_string(rest);
    decimals.insert(0, 8 - decimals.size(), '0');
    decimals.erase(decimals.find_last_not_of('0') + 1);
    text += "." + decimals;
  }
  return text;
}

Expected<Amount> Amount::plus(Amount other) const {
  std::int64_t sum = 0;
  if (__builtin_add_overflow(units_, other.units_, &sum)) return overflow();
  return from_units(sum);
}

Expected<Amount> Amount::minus(Amount other) const {
  std::int64_t difference = 0;
  if (__builtin_sub_overflow(units_, other.units_, &difference)) return overflow();
  return from_units(difference);
}

Expected<Amount> Amount::scaled(std::int64_t numerator, std::int64_t denominator) const {
  NS_CHECK(denominator > 0);
  const Int128 product = static_cast<Int128>(units_) * numerator;
  Int128 quotient = product / denominator;
  if (product % denominator != 0 && product < 0) --quotient;
  if (quotient > std::numeric_limits<std::int64_t>::max() ||
      quotient < std::numeric_limits<std::int64_t>::min()) {
    return overflow();
  }
  return from_units(static_cast<std::int64_t>(quotient));
}

}  // namespace neuroshard
