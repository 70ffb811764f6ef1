// The codecs' loops in plain C++, for processors without a table of their own.
#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <functional>

#include "core/base/bytes.h"
#include "core/outer/detail/codec_kernels.h"

namespace neuroshard::outer::detail {
namespace {

// Table of the reflected polynomial, one byte at a time.
constexpr std::array<std::uint32_t, 256> crc_table = [] {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0x82f63b78u : 0u);
    table[byte] = crc;
  }
  return table;
}();

std::uint32_t crc32c(std::uint32_t crc, const std::uint8_t* bytes, std::size_t count) {
  crc = ~crc;
  for (std::size_t i = 0; i < count; ++i) crc = (crc >> 8) ^ crc_table[(crc ^ bytes[i]) & 0xff];
  return ~crc;
}

std::uint32_t magnitude(float value) {
  return std::bit_cast<std::uint32_t>(value) & magnitude_mask;
}

std::uint32_t largest(const float* values, std::size_t count) {
  std::uint32_t most = 0;
  for (std::size_t i = 0; i < count; ++i) most = std::max(most, magnitude(values[i]));
  return most;
}

std::uint16_t half_of(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = (bits >> 16) & 0x8000;
  const std::uint32_t rest = bits & magnitude_mask;
  std::uint32_t half = 0;
  if (rest < 0x38800000) {
    // Below 2^-14 a half's values are 2^-24 apart, as a float's are from 0.5 on: adding 0.5 rounds.
    half = std::bit_cast<std::uint32_t>(std::bit_cast<float>(rest) + 0.5f) - 0x3f000000;
  } else {
    const std::uint32_t rebiased = rest - (112u << 23);
    half = (rebiased + 0xfff + ((rebiased >> 13) & 1)) >> 13;
  }
  return static_cast<std::uint16_t>(sign | half);
}

float float_of(std::uint16_t half) {
  const std::uint32_t sign = std::uint32_t{half} << 16 & 0x80000000;
  const std::uint32_t rest = half & 0x7fff;
  if (rest < 0x0400) {
    const float value = static_cast<float>(rest) * 5.9604644775390625e-8f;  // 2^-24
    return std::bit_cast<float>(std::bit_cast<std::uint32_t>(value) | sign);
  }
  const std::uint32_t exponent = rest < 0x7c00 ? 112u << 23 : 224u << 23;
  return std::bit_cast<float>(sign | ((rest << 13) + exponent));
}

void to_fp16(const float* values, std::size_t count, float scale, std::uint8_t* out) {
  for (std::size_t i = 0; i < count; ++i) store_le(out + 2 * i, half_of(values[i] * scale));
}

void from_fp16(const std::uint8_t* in, std::size_t count, float scale, float* out) {
  for (std::size_t i = 0; i < count; ++i) out[i] = float_of(load_le<std::uint16_t>(in + 2 * i)) * scale;
}

std::uint32_t largest_fp16(const std::uint8_t* in, std::size_t count) {
  std::uint32_t most = 0;
  for (std::size_t i = 0; i < count; ++i)
    most = std::max<std::uint32_t>(most, load_le<std::uint16_t>(in + 2 * i) & 0x7fff);
  return most;
}

// Nearest even for |value| < 2^22: the sum has no bits left for a fraction.
int nearest(float value) {
  constexpr float rounding = 12582912.0f;  // 1.5 · 2^23
  return static_cast<int>((value + rounding) - rounding);
}

void quantise8(const float* values, std::size_t count, float inverse, std::uint8_t* out) {
  for (std::size_t i = 0; i < count; ++i) out[i] = static_cast<std::uint8_t>(nearest(values[i] * inverse));
}

void quantise4(const float* values, std::size_t count, float inverse, std::uint8_t* out) {
  for (std::size_t i = 0; i < count; i += 2) {
    const int low = nearest(values[i] * inverse);
    const int high = i + 1 < count ? nearest(values[i + 1] * inverse) : 0;
    out[i / 2] = static_cast<std::uint8_t>((low & 15) | (high & 15) << 4);
  }
}

std::uint32_t dequantise8(const std::uint8_t* in, std::size_t count, float scale, float* out) {
  int most = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const int q = static_cast<std::int8_t>(in[i]);
    most = std::max(most, q < 0 ? -q : q);
    out[i] = static_cast<float>(q) * scale;
  }
  return static_cast<std::uint32_t>(most);
}

std::uint32_t dequantise4(const std::uint8_t* in, std::size_t count, float scale, float* out) {
  int most = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const int nibble = in[i / 2] >> (i % 2 * 4) & 15;
    const int q = (nibble ^ 8) - 8;
    most = std::max(most, q < 0 ? -q : q);
    out[i] = static_cast<float>(q) * scale;
  }
  return static_cast<std::uint32_t>(most);
}

std::uint32_t select(const float* values, std::uint32_t k, std::uint16_t* places, float* selected,
                     std::uint32_t* largest_out, std::uint32_t* /*hint*/) {
  std::array<std::uint32_t, select_values> keys;
  for (std::size_t i = 0; i < select_values; ++i) keys[i] = magnitude(values[i]);
  *largest_out = *std::max_element(keys.begin(), keys.end());
  std::nth_element(keys.begin(), keys.begin() + (k - 1), keys.end(), std::greater<>());
  // All above the k-th largest, and of those equal to it the first ones.
  const std::uint32_t bound = keys[k - 1];
  const auto above =
      std::count_if(keys.begin(), keys.begin() + k, [&](std::uint32_t key) { return key > bound; });
  std::uint32_t equal = bound == 0 ? 0 : k - static_cast<std::uint32_t>(above);
  std::uint32_t found = 0;
  for (std::size_t i = 0; i < select_values; ++i) {
    const std::uint32_t key = magnitude(values[i]);
    if (key < bound || (key == bound && equal == 0)) continue;
    if (key == bound) --equal;
    places[found] = static_cast<std::uint16_t>(i);
    selected[found++] = values[i];
  }
  return found;
}

void split(const float* values, std::size_t count, float threshold, MagnitudeSides* sides) {
  constexpr std::size_t lanes = 8;
  std::array<double, lanes> low{}, high{};
  std::uint32_t above = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const float value = std::bit_cast<float>(magnitude(values[i]));
    const bool is_high = value > threshold;
    (is_high ? high : low)[i % lanes] += static_cast<double>(value);
    above += is_high ? 1u : 0u;
  }
  for (std::size_t width = lanes / 2; width > 0; width /= 2) {
    for (std::size_t lane = 0; lane < width; ++lane) {
      low[lane] += low[lane + width];
      high[lane] += high[lane + width];
    }
  }
  *sides = {low[0], high[0], above};
}

}  // namespace

const CodecKernels codec_kernels_portable = {
    "portable", crc32c,    largest,     to_fp16,     from_fp16, largest_fp16,
    quantise8,  quantise4, dequantise8, dequantise4, select,    split,
};

}  // namespace neuroshard::outer::detail
