// Versions of this program: "0.2.0", or "0.2.0+git202611250844.b5d1080" between two releases
// (installers/cpack_version.cmake).
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "core/base/expected.h"

namespace neuroshard {

// Ordered: 0.2.0 < 0.2.0+git… < 0.2.1. Two builds of one number are ordered by their text, which begins with
// the time.
struct Version {
  std::array<std::uint32_t, 3> number{};
  std::string build;  // behind the "+"; empty: a release

  // InvalidArgument: anything else than three numbers, each below 1,000,000 and without leading zeros, and
  // "+" with at most 40 letters, digits and dots.
  static Expected<Version> parse(std::string_view text);
  std::string text() const;

  friend bool operator==(const Version& a, const Version& b) {
    return a.number == b.number && a.build == b.build;
  }
  friend bool operator<(const Version& a, const Version& b) {
    return a.number != b.number ? a.number < b.number : a.build < b.build;
  }
};

}  // namespace neuroshard
