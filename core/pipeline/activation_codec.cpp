#include "core/pipeline/activation_codec.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "core/base/check.h"

namespace neuroshard::pipeline {
namespace {

static_assert(std::endian::native == std::endian::little);

// An exponent of ones: infinity or not a number. Written so that the compiler turns the loop into vector code.
bool all_finite(Span<const float> values) {
  std::uint32_t found = 0;
  for (const float value : values) {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    found |= static_cast<std::uint32_t>((bits & 0x7F800000u) == 0x7F800000u);
  }
  return found == 0;
}

Error not_finite() {
  return make_error(ErrorCode::Corrupt, "an activation or a gradient is not a finite number");
}

std::uint16_t to_bf16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  return static_cast<std::uint16_t>((bits + 0x7FFFu + ((bits >> 16) & 1u)) >> 16);
}

void write_bf16(Span<const float> values, std::uint8_t* target) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::uint16_t half = to_bf16(values[i]);
    std::memcpy(target + 2 * i, &half, sizeof half);
  }
}

void read_bf16(const std::uint8_t* source, Span<float> values) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    std::uint16_t half = 0;
    std::memcpy(&half, source + 2 * i, sizeof half);
    values[i] = std::bit_cast<float>(std::uint32_t{half} << 16);
  }
}

void write_int8(Span<const float> row, std::uint8_t* target) {
  float most = 0;
  for (const float value : row) most = std::max(most, std::abs(value));
  const float scale = most / 127.0f;
  std::memcpy(target, &scale, sizeof scale);
  // Of a row of zeros, or of values so small that their scale is none, nothing is left.
  const float inverse = scale > 0 ? 1.0f / scale : 0.0f;
  const float factor = std::isfinite(inverse) ? inverse : 0.0f;
  auto* quants = reinterpret_cast<std::int8_t*>(target + sizeof scale);
  for (std::size_t i = 0; i < row.size(); ++i)
    quants[i] = static_cast<std::int8_t>(std::clamp(std::nearbyint(row[i] * factor), -127.0f, 127.0f));
}

void read_int8(const std::uint8_t* source, Span<float> row) {
  float scale = 0;
  std::memcpy(&scale, source, sizeof scale);
  const auto* quants = reinterpret_cast<const std::int8_t*>(source + sizeof scale);
  for (std::size_t i = 0; i < row.size(); ++i) row[i] = scale * static_cast<float>(quants[i]);
}

}  // namespace

std::string_view to_text(WireFormat format) {
  switch (format) {
    case WireFormat::Fp32: return "fp32";
    case WireFormat::Bf16: return "bf16";
    case WireFormat::Int8: return "int8";
  }
  return "unknown";
}

std::size_t encoded_bytes(WireFormat format, std::size_t rows, std::size_t hidden) {
  switch (format) {
    case WireFormat::Fp32: return rows * hidden * sizeof(float);
    case WireFormat::Bf16: return rows * hidden * sizeof(std::uint16_t);
    case WireFormat::Int8: return rows * (sizeof(float) + hidden);
  }
  return 0;
}

Expected<void> append_rows(WireFormat format, Span<const float> values, std::size_t hidden, Bytes& bytes) {
  NS_CHECK(hidden > 0 && values.size() % hidden == 0);
  if (values.empty()) return {};  // the stage with the embedding has no gradient of its input
  if (!all_finite(values)) return not_finite();
  const std::size_t rows = values.size() / hidden, row_bytes = encoded_bytes(format, 1, hidden);
  const std::size_t before = bytes.size();
  bytes.resize(before + rows * row_bytes);
  std::uint8_t* target = bytes.data() + before;
  if (format == WireFormat::Fp32) std::memcpy(target, values.data(), rows * row_bytes);
  if (format == WireFormat::Bf16) write_bf16(values, target);
  if (format == WireFormat::Int8)
    for (std::size_t row = 0; row < rows; ++row)
      write_int8(values.subspan(row * hidden, hidden), target + row * row_bytes);
  // bf16 rounds the largest fp32 values to infinity.
  if (format == WireFormat::Bf16) {
    const auto is_infinite = [](float value) { return (to_bf16(value) & 0x7F80u) == 0x7F80u; };
    if (std::any_of(values.begin(), values.end(), is_infinite)) {
      bytes.resize(before);
      return not_finite();
    }
  }
  return {};
}

Expected<void> read_rows(WireFormat format, ByteSpan bytes, std::size_t hidden, Span<float> values) {
  NS_CHECK(hidden > 0 && bytes.size() == encoded_bytes(format, values.size() / hidden, hidden));
  if (values.empty()) return {};
  const std::size_t rows = values.size() / hidden, row_bytes = encoded_bytes(format, 1, hidden);
  if (format == WireFormat::Fp32) std::memcpy(values.data(), bytes.data(), bytes.size());
  if (format == WireFormat::Bf16) read_bf16(bytes.data(), values);
  if (format == WireFormat::Int8)
    for (std::size_t row = 0; row < rows; ++row)
      read_int8(bytes.data() + row * row_bytes, values.subspan(row * hidden, hidden));
  if (!all_finite({values.data(), values.size()})) return not_finite();
  return {};
}

}  // namespace neuroshard::pipeline
