// How exported weights are stored: fp32 as trained, or fewer bits. Threads: any.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/base/bytes.h"
#include "core/base/expected.h"
#include "core/base/span.h"

namespace neuroshard::exporting {

enum class StoredType : std::uint8_t {
  F32,
  F16,   // IEEE 754 half precision
  BF16,  // the upper half of an fp32
  Q8_0,  // blocks of 32: an F16 scale and 32 signed bytes (ggml)
};

inline constexpr std::size_t q8_0_block = 32;        // values
inline constexpr std::size_t q8_0_block_bytes = 34;  // scale and values

// "f32", "f16", "bf16", "q8_0". InvalidArgument names them.
Expected<StoredType> parse_stored_type(std::string_view text);
std::string_view to_string(StoredType type);

// Of `count` values; for Q8_0 a multiple of q8_0_block.
std::uint64_t stored_bytes(StoredType type, std::uint64_t count);

// Appends the values, rounded to nearest even (Q8_0: half away from zero, as ggml does). F32 keeps every bit.
// For Q8_0 the number of values is a multiple of q8_0_block.
// InvalidArgument: a value that the type can't hold: infinite, not a number (F16, Q8_0), or beyond 65504 (F16; in
// Q8_0 beyond 127 times that).
Expected<void> append_stored(StoredType type, Span<const float> values, Bytes* out);

// The exact value of the 16 bits.
float from_bf16(std::uint16_t bits);
float from_f16(std::uint16_t bits);

}  // namespace neuroshard::exporting
