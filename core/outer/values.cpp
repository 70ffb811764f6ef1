#include "core/outer/values.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace neuroshard::outer {

static_assert(std::endian::native == std::endian::little, "values are stored as they lie in memory");

ValueSource values_of(Span<const float> values) {
  return {values.size(),
          [values](std::uint64_t first, Span<float> out) -> Expected<void> {
            std::copy_n(values.begin() + first, out.size(), out.begin());
            return {};
          },
          values};
}

ValueSource values_of(ByteSourcePtr bytes, std::uint64_t offset, std::uint64_t count) {
  return {count, [bytes = std::move(bytes), offset](std::uint64_t first, Span<float> out) {
            return bytes->read_at(offset + first * sizeof(float),
                                  {reinterpret_cast<std::uint8_t*>(out.data()), out.size_bytes()});
          }};
}

Expected<std::vector<float>> read_all(const ValueSource& values) {
  std::vector<float> all(static_cast<std::size_t>(values.count));
  NS_RETURN_IF_ERROR(values.read(0, all));
  return all;
}

WriteValues write_to(ByteSink& sink, std::uint64_t offset) {
  return [&sink, offset](std::uint64_t first, Span<const float> values) {
    return sink.write_at(offset + first * sizeof(float), as_bytes(values));
  };
}

}  // namespace neuroshard::outer
