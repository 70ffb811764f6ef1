// Network byte order. The caller has checked the length.
#pragma once

#include "core/base/bytes.h"

namespace neuroshard::nat::detail {

inline std::uint16_t load_be16(const std::uint8_t* at) {
  return static_cast<std::uint16_t>(at[0] << 8 | at[1]);
}
inline std::uint32_t load_be32(const std::uint8_t* at) {
  return static_cast<std::uint32_t>(at[0]) << 24 | static_cast<std::uint32_t>(at[1]) << 16 |
         static_cast<std::uint32_t>(at[2]) << 8 | at[3];
}
inline void store_be16(std::uint8_t* at, std::uint16_t value) {
  at[0] = static_cast<std::uint8_t>(value >> 8);
  at[1] = static_cast<std::uint8_t>(value);
}
inline void store_be32(std::uint8_t* at, std::uint32_t value) {
  store_be16(at, static_cast<std::uint16_t>(value >> 16));
  store_be16(at + 2, static_cast<std::uint16_t>(value));
}

}  // namespace neuroshard::nat::detail
