// Small text files of the kernel (/proc, /sys): read whole, bounded, empty when missing.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace neuroshard::platform::detail {

std::string read_small_file(const std::string& path);
// The number after `key` and white space at the start of a line ("MemAvailable:   123 kB"), if there.
std::optional<std::uint64_t> number_after(std::string_view text, std::string_view key);
// A whole text that is one number, as in cgroup files; nothing for "max".
std::optional<std::uint64_t> parse_number(std::string_view text);

}  // namespace neuroshard::platform::detail
