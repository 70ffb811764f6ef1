// A key for finding equal bytes among many: of their length and of eight places in them, so that it costs the
// same for a megabyte as for a kilobyte. Callers compare two that have the same key.
#pragma once

#include <functional>
#include <string_view>

#include "core/base/bytes.h"

namespace neuroshard::sim {

inline std::size_t sampled_key(ByteSpan bytes) {
  constexpr std::size_t places = 8;
  std::uint64_t key = bytes.size();
  if (bytes.size() < places * sizeof(key)) return std::hash<std::string_view>()(as_text(bytes));
  for (std::size_t i = 0; i < places; ++i)
    key = (key ^ load_le<std::uint64_t>(bytes.data() + i * (bytes.size() - sizeof(key)) / (places - 1))) *
          0x9e3779b97f4a7c15;
  return static_cast<std::size_t>(key ^ key >> 32);
}

}  // namespace neuroshard::sim
