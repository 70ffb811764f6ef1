// Numbers with a unit, as people write and read them: "512MiB", "2g", "30s", "10min". Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace neuroshard::config::detail {

enum class Quantity : std::uint8_t {
  Count,    // without a unit
  Bytes,    // in powers of 1024, with or without the "i"
  Seconds,  // s, min, h, day and their short forms
};

// A whole number and, after spaces or none, a unit of this kind. lower_case: the text, which begins and ends without
// spaces. None: the text is something else, or the number needs more than 64 bits. Any bytes are safe.
std::optional<std::uint64_t> parse_quantity(Quantity kind, std::string_view lower_case);

// With the largest unit of which it is a whole number: "2GiB", "90s", "0".
std::string format_quantity(Quantity kind, std::uint64_t number);

}  // namespace neuroshard::config::detail
