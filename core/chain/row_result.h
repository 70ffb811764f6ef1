// The result of one row in a round, as a block carries it and as the row's holders attest it.
#pragma once

#include <cstdint>

#include "core/base/bytes.h"

namespace neuroshard::chain {

struct RowResult {
  std::uint32_t row = 0;
  bool carried = false;  // the anchor stays; what follows is zero then
  Hash256 anchor{};
  // Merkle root over the trace of its aggregation (core/rounds/step.h). Without one, over the contributors' payload roots,
  // ascending by member.
  Hash256 trace{};
  std::uint64_t norm_bits = 0;  // IEEE 754 bits of the lower median norm of the contributors' deltas
  friend bool operator==(const RowResult&, const RowResult&) = default;
};

inline RowResult carried_row(std::uint32_t row) {
  RowResult result;
  result.row = row;
  result.carried = true;
  return result;
}

}  // namespace neuroshard::chain
