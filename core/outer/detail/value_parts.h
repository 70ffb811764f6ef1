// A delta read from its start to its end, a buffer at a time.
#pragma once

#include <algorithm>
#include <memory>

#include "core/outer/codec.h"

namespace neuroshard::outer::detail {

constexpr std::size_t part_values = 4 * codec_chunk;  // 64 KiB

// use(first, Span<float>) over parts of part_values, the last one possibly shorter; it may write to them, and
// returns Expected<void>.
template <class Use>
Expected<void> each_part(const ValueSource& values, Use use) {
  const auto room = static_cast<std::size_t>(std::min<std::uint64_t>(values.count, part_values));
  const auto buffer = std::make_unique_for_overwrite<float[]>(room);
  for (std::uint64_t at = 0; at < values.count; at += room) {
    const Span<float> part(buffer.get(),
                           static_cast<std::size_t>(std::min<std::uint64_t>(room, values.count - at)));
    NS_RETURN_IF_ERROR(values.read(at, part));
    NS_RETURN_IF_ERROR(use(at, part));
  }
  return {};
}

// use(first, Span<const float>) over chunks of codec_chunk values.
template <class Use>
Expected<void> each_chunk(const ValueSource& values, Use use) {
  const auto cut = [&](std::uint64_t first, Span<const float> part) -> Expected<void> {
    for (std::size_t at = 0; at < part.size(); at += codec_chunk)
      NS_RETURN_IF_ERROR(use(first + at, part.subspan(at, std::min(codec_chunk, part.size() - at))));
    return {};
  };
  if (!values.view.empty()) return cut(0, values.view);
  return each_part(values, [&](std::uint64_t first, Span<float> part) {
    return cut(first, Span<const float>(part.data(), part.size()));
  });
}

}  // namespace neuroshard::outer::detail
