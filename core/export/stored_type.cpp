#include "core/export/stored_type.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "core/base/check.h"

namespace neuroshard::exporting {
namespace {

constexpr struct {
  StoredType type;
  std::string_view name;
} names[] = {{StoredType::F32, "f32"},
             {StoredType::F16, "f16"},
             {StoredType::BF16, "bf16"},
             {StoredType::Q8_0, "q8_0"}};

std::uint32_t bits_of(float value) {
  std::uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}

// Drops the lower `drop` bits of a positive number, to nearest, ties to even.
std::uint32_t round_bits(std::uint32_t bits, unsigned drop) {
  const std::uint32_t half = 1u << (drop - 1);
  const std::uint32_t odd = (bits >> drop) & 1;
  return (bits + half - 1 + odd) >> drop;
}

// A finite number; beyond the largest half it becomes infinite.
std::uint16_t half_of(float value) {
  const std::uint32_t bits = bits_of(value);
  const auto sign = static_cast<std::uint16_t>(bits >> 16 & 0x8000);
  const std::uint32_t magnitude = bits & 0x7fffffff;
  constexpr std::uint32_t least_normal = 113u << 23;  // 2^-14
  std::uint32_t half;
  if (magnitude >= least_normal) {
    half = round_bits(magnitude - (112u << 23), 13);
  } else {
    // A subnormal half counts in units of 2^-24: adding 0.5 leaves that count in the mantissa, rounded to even.
    half = bits_of(std::fabs(value) + 0.5f) - bits_of(0.5f);
  }
  return static_cast<std::uint16_t>(sign | std::min<std::uint32_t>(half, 0x7c00));
}

constexpr std::uint16_t half_infinity = 0x7c00;

Error not_representable(StoredType type, float value) {
  return make_error(
      ErrorCode::InvalidArgument,
      fmt::format("the weight {} can't be stored as {}; export as bf16 or f32", value, to_string(type)));
}

Expected<void> append_half(Span<const float> values, Bytes* out) {
  for (const float value : values) {
    if (!std::isfinite(value)) return not_representable(StoredType::F16, value);
    const std::uint16_t half = half_of(value);
    if ((half & half_infinity) == half_infinity) return not_representable(StoredType::F16, value);
    append_le(*out, half);
  }
  return {};
}

void append_bf16(Span<const float> values, Bytes* out) {
  for (const float value : values) {
    const std::uint32_t bits = bits_of(value);
    // Rounding could turn a NaN into an infinity: it stays one, made quiet.
    const std::uint32_t upper =
        std::isnan(value) ? (bits >> 16 | 0x40) : (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
    append_le(*out, static_cast<std::uint16_t>(upper));
  }
}

Expected<void> append_q8_0(Span<const float> values, Bytes* out) {
  NS_CHECK(values.size() % q8_0_block == 0);
  for (std::size_t at = 0; at < values.size(); at += q8_0_block) {
    const Span<const float> block = values.subspan(at, q8_0_block);
    float largest = 0;
    for (const float value : block) {
      if (!std::isfinite(value)) return not_representable(StoredType::Q8_0, value);
      largest = std::max(largest, std::fabs(value));
    }
    const float scale = largest / 127.0f;
    const std::uint16_t stored = half_of(scale);
    if (stored >= half_infinity) return not_representable(StoredType::Q8_0, largest);
    const float inverse = stored != 0 ? 1.0f / scale : 0.0f;  // a scale of 0 makes every value 0
    append_le(*out, stored);
    for (const float value : block) {
      out->push_back(static_cast<std::uint8_t>(static_cast<std::int8_t>(std::lround(value * inverse))));
    }
  }
  return {};
}

}  // namespace

Expected<StoredType> parse_stored_type(std::string_view text) {
  for (const auto& entry : names) {
    if (entry.name == text) return entry.type;
  }
  return make_error(
      ErrorCode::InvalidArgument,
      fmt::format("weights are stored as f32, f16, bf16 or q8_0, not as \"{}\"", text.substr(0, 40)));
}

std::string_view to_string(StoredType type) {
  return names[static_cast<std::size_t>(type)].name;
}

std::uint64_t stored_bytes(StoredType type, std::uint64_t count) {
  switch (type) {
    case StoredType::F32: return 4 * count;
    case StoredType::F16:
    case StoredType::BF16: return 2 * count;
    case StoredType::Q8_0: break;
  }
  return count / q8_0_block * q8_0_block_bytes;
}

Expected<void> append_stored(StoredType type, Span<const float> values, Bytes* out) {
  out->reserve(out->size() + static_cast<std::size_t>(stored_bytes(type, values.size())));
  switch (type) {
    case StoredType::F32: {
      const ByteSpan bytes = as_bytes(values);
      out->insert(out->end(), bytes.begin(), bytes.end());
      return {};
    }
    case StoredType::F16: return append_half(values, out);
    case StoredType::BF16: append_bf16(values, out); return {};
    case StoredType::Q8_0: break;
  }
  return append_q8_0(values, out);
}

float from_bf16(std::uint16_t bits) {
  const std::uint32_t wide = std::uint32_t{bits} << 16;
  float value = 0;
  std::memcpy(&value, &wide, sizeof value);
  return value;
}

float from_f16(std::uint16_t bits) {
  const int exponent = bits >> 10 & 0x1f;
  const int fraction = bits & 0x3ff;
  float value = exponent == 0     ? std::ldexp(static_cast<float>(fraction), -24)
                : exponent < 0x1f ? std::ldexp(static_cast<float>(fraction + 0x400), exponent - 25)
                : fraction == 0   ? std::numeric_limits<float>::infinity()
                                  : std::numeric_limits<float>::quiet_NaN();
  return (bits & 0x8000) != 0 ? -value : value;
}

}  // namespace neuroshard::exporting
