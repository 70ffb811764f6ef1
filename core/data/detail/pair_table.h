// Hash table from a pair of token ids to a 32-bit value: open addressing, linear probing, at most half full,
// one cache line per look-up nearly always. Grows, never shrinks; values can be changed, not removed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/base/check.h"

namespace neuroshard::data::detail {

class PairTable {
 public:
  static constexpr std::uint32_t absent = 0xFFFFFFFFu;

  explicit PairTable(std::size_t expected = 0) { rehash(capacity_for(expected)); }

  std::size_t size() const { return size_; }

  std::uint32_t find(std::uint32_t left, std::uint32_t right) const {
    const std::uint64_t key = make_key(left, right);
    for (std::size_t at = slot(key);; at = (at + 1) & mask_) {
      const Entry& entry = entries_[at];
      if (entry.value == absent || entry.key == key) return entry.value;
    }
  }

  // The stored value; `value` (not `absent`) if the pair was not there, and then *inserted is true.
  std::uint32_t find_or_insert(std::uint32_t left, std::uint32_t right, std::uint32_t value, bool* inserted) {
    NS_CHECK(value != absent);
    if (2 * (size_ + 1) > entries_.size()) rehash(2 * entries_.size());
    const std::uint64_t key = make_key(left, right);
    std::size_t at = slot(key);
    while (entries_[at].value != absent && entries_[at].key != key) at = (at + 1) & mask_;
    *inserted = entries_[at].value == absent;
    if (*inserted) {
      entries_[at] = {key, value};
      ++size_;
    }
    return entries_[at].value;
  }

 private:
  struct Entry {
    std::uint64_t key = 0;
    std::uint32_t value = absent;
  };

  static std::uint64_t make_key(std::uint32_t left, std::uint32_t right) {
    return static_cast<std::uint64_t>(left) << 32 | right;
  }
  static std::size_t capacity_for(std::size_t expected) {
    std::size_t capacity = 64;
    while (capacity < 2 * expected) capacity *= 2;
    return capacity;
  }
  std::size_t slot(std::uint64_t key) const {
    // Fibonacci hashing (Knuth, vol. 3, 6.4) after folding the halves together.
    key ^= key >> 29;
    return static_cast<std::size_t>((key * 0x9E3779B97F4A7C15ull) >> shift_) & mask_;
  }
  void rehash(std::size_t capacity) {
    std::vector<Entry> old = std::move(entries_);
    entries_.assign(capacity, Entry{});
    mask_ = capacity - 1;
    shift_ = 64;
    for (std::size_t c = capacity; c > 1; c /= 2) --shift_;
    for (const Entry& entry : old) {
      if (entry.value == absent) continue;
      std::size_t at = slot(entry.key);
      while (entries_[at].value != absent) at = (at + 1) & mask_;
      entries_[at] = entry;
    }
  }

  std::vector<Entry> entries_;
  std::size_t mask_ = 0;
  unsigned shift_ = 64;
  std::size_t size_ = 0;
};

}  // namespace neuroshard::data::detail
