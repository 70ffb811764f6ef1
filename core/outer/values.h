// fp32 values that are read and written in parts, so that no computation of a round holds all of them.
#pragma once

#include <functional>
#include <vector>

#include "core/base/byte_source.h"
#include "core/base/expected.h"
#include "core/base/span.h"

namespace neuroshard::outer {

// count values; read() gives those from `first` on, as many as the span has. The same values each time.
struct ValueSource {
  std::uint64_t count = 0;
  std::function<Expected<void>(std::uint64_t first, Span<float> out)> read;
  // All of them, where they stand in memory anyway; else nothing. Spares a copy.
  Span<const float> view{};
};
// Takes the values from `first` on.
using WriteValues = std::function<Expected<void>(std::uint64_t first, Span<const float> values)>;

// The values stay the caller's.
ValueSource values_of(Span<const float> values);
// count fp32 values, little-endian, from `offset` on.
ValueSource values_of(ByteSourcePtr bytes, std::uint64_t offset, std::uint64_t count);
// Value i goes to offset + 4·i. The sink stays the caller's.
WriteValues write_to(ByteSink& sink, std::uint64_t offset);
// All of them in memory: of small models.
Expected<std::vector<float>> read_all(const ValueSource& values);

}  // namespace neuroshard::outer
