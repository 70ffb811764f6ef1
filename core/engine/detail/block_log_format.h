// The bytes of a log of blocks (block_log.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace neuroshard::engine::detail {

inline constexpr std::string_view log_magic = "NSCB";
inline constexpr std::uint16_t log_version = 1;
inline constexpr std::size_t log_head = 4 + 2 + 8;  // magic, version, first height
inline constexpr std::size_t block_head = 4 + 4;    // length, CRC-32C
inline constexpr std::size_t version_at = 4, first_at = 6;

}  // namespace neuroshard::engine::detail
