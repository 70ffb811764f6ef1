// Equal values are not enough where nodes compare hashes: a zero and a minus zero are equal. Header only.
#pragma once

#include <cstring>
#include <vector>

namespace neuroshard::outer::samples {

inline bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

}  // namespace neuroshard::outer::samples
