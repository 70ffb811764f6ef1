// How activations and their gradients travel between two stages (docs/protocol/pipeline.md#tensors).
//
//   Fp32   the values                                     4·hidden bytes a row
//   Bf16   rounded to nearest, ties to even               2·hidden
//   Int8   scale fp32 · values i8, value = scale · q      4 + hidden; scale = max |x| / 127 of the row
//
// A row is one token. All little-endian. Cost: one pass over the values. Threads: any.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "core/base/bytes.h"
#include "core/base/expected.h"
#include "core/base/span.h"

namespace neuroshard::pipeline {

enum class WireFormat : std::uint8_t { Fp32 = 0, Bf16 = 1, Int8 = 2 };
inline constexpr std::uint8_t wire_formats = 3;
std::string_view to_text(WireFormat format);  // "fp32", "bf16", "int8"

std::size_t encoded_bytes(WireFormat format, std::size_t rows, std::size_t hidden);

// values [rows, hidden], appended to `bytes`. Corrupt if a value is not finite: `bytes` is as before.
Expected<void> append_rows(WireFormat format, Span<const float> values, std::size_t hidden, Bytes& bytes);

// bytes: exactly encoded_bytes() of the rows of `values`, else a bug. Corrupt if a value is not finite: a peer's
// fault.
Expected<void> read_rows(WireFormat format, ByteSpan bytes, std::size_t hidden, Span<float> values);

}  // namespace neuroshard::pipeline
