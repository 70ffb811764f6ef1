// The rows of the model that a member holds: it trains them, keeps their payloads and attests their results. Empty:
// all rows.
//
// Canonical bytes: one bit per row from row 0 on, no zero byte at the end. Threads: any.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <optional>
#include <vector>

#include "core/base/bytes.h"

namespace neuroshard::chain {

class RowSet {
 public:
  RowSet() = default;  // all rows
  static RowSet of(const std::vector<std::uint32_t>& rows) {
    RowSet set;
    for (const std::uint32_t row : rows) {
      if (row / 8 >= set.bits_.size()) set.bits_.resize(row / 8 + 1);
      set.bits_[row / 8] |= static_cast<std::uint8_t>(1u << (row % 8));
    }
    return set;
  }
  // Nothing: no row, or not canonical.
  static std::optional<RowSet> from_bits(ByteSpan bits) {
    if (bits.empty() || bits.back() == 0) return std::nullopt;
    RowSet set;
    set.bits_.assign(bits.begin(), bits.end());
    return set;
  }
  const Bytes& bits() const { return bits_; }

  bool is_all() const { return bits_.empty(); }
  bool has(std::uint32_t row) const {
    return is_all() || (row / 8 < bits_.size() && (bits_[row / 8] >> (row % 8) & 1u) != 0);
  }
  // All rows of the set are below; 0: it names none.
  std::uint32_t end() const {
    if (is_all()) return 0;
    return static_cast<std::uint32_t>(8 * (bits_.size() - 1)) +
           static_cast<std::uint32_t>(std::bit_width(bits_.back()));
  }
  // Those of these rows that are in the set, in their order.
  std::vector<std::uint32_t> among(std::vector<std::uint32_t> rows) const {
    std::erase_if(rows, [this](std::uint32_t row) { return !has(row); });
    return rows;
  }
  friend bool operator==(const RowSet&, const RowSet&) = default;

 private:
  Bytes bits_;
};

}  // namespace neuroshard::chain
