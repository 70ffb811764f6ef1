// Numbers of records by a 32-byte key: a sorted array, because registries are copied often and change little.
// A key whose record is gone may stay in it: callers look the record up by its number.
// Threads: one writes, or many read.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "core/base/bytes.h"

namespace neuroshard::chain {

class KeyIndex {
 public:
  KeyIndex() = default;
  explicit KeyIndex(std::vector<std::pair<Hash256, std::uint32_t>> entries) : entries_(std::move(entries)) {
    std::sort(entries_.begin(), entries_.end());
  }
  // Replaces what the key stood for. Cost: moves half of the array.
  void put(const Hash256& key, std::uint32_t number) {
    const auto at = place(key);
    if (at != entries_.end() && at->first == key) {
      entries_[static_cast<std::size_t>(at - entries_.begin())].second = number;
    } else {
      entries_.insert(at, {key, number});
    }
  }
  std::optional<std::uint32_t> find(const Hash256& key) const {
    const auto at = place(key);
    if (at == entries_.end() || at->first != key) return std::nullopt;
    return at->second;
  }
  // At most so many keys: those that follow this one, from the lowest on again after the highest.
  std::vector<Hash256> after(const Hash256& key, std::size_t most) const {
    std::vector<Hash256> keys;
    const auto first = static_cast<std::size_t>(place(key) - entries_.begin());
    for (std::size_t i = 0; i < entries_.size() && keys.size() < most; ++i)
      if (const Hash256& one = entries_[(first + i) % entries_.size()].first; one != key) keys.push_back(one);
    return keys;
  }
  bool has_duplicates() const {
    return std::adjacent_find(entries_.begin(), entries_.end(), [](const auto& a, const auto& b) {
             return a.first == b.first;
           }) != entries_.end();
  }

 private:
  std::vector<std::pair<Hash256, std::uint32_t>>::const_iterator place(const Hash256& key) const {
    return std::lower_bound(entries_.begin(), entries_.end(), key,
                            [](const auto& entry, const Hash256& wanted) { return entry.first < wanted; });
  }
  std::vector<std::pair<Hash256, std::uint32_t>> entries_;
};

}  // namespace neuroshard::chain
