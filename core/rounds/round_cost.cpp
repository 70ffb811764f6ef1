#include "core/rounds/round_cost.h"

#include <algorithm>

#include "core/outer/aggregate.h"
#include "core/rounds/aggregation_tree.h"

namespace neuroshard::rounds {
namespace {

constexpr std::uint64_t small_records = 64u << 10;

}  // namespace

RoundCost round_cost(const RoundShape& shape) {
  const std::uint64_t floats = shape.values * sizeof(float), anchor = 2 * floats;
  const std::uint64_t payload = outer::max_payload_bytes(shape.codec, shape.values);
  const std::uint64_t contributors = std::max<std::size_t>(shape.contributors, 1), others = contributors - 1;
  const std::uint64_t feedback = shape.error_feedback ? floats : 0;
  const std::size_t members = std::max<std::size_t>(shape.group_members, 2);
  // Each sub-group's aggregate, and its payload.
  std::uint64_t groups = 0;
  for (std::size_t level = contributors; level > members; groups += level)
    level = sub_group_count(level, members);
  const std::uint64_t sums = groups * (floats + outer::max_payload_bytes({outer::Codec::Int8}, shape.values));
  // fp64 after each chunk, of up to all pairs of contributors.
  const std::uint64_t chunks = (shape.values + outer::trace_chunk - 1) / outer::trace_chunk;
  const std::uint64_t in_trace = std::min(contributors, members);
  const std::uint64_t trace = shape.taken_back ? chunks * in_trace * (in_trace + 1) / 2 * sizeof(double) : 0;
  RoundCost cost;
  cost.kept = anchor + payload + (shape.error_feedback ? payload + floats : 0) + small_records;
  // Payloads, the weights at the boundary, the error feedback's buffer, the aggregate, the anchor.
  cost.temporary = contributors * payload + floats + feedback + floats + sums + anchor + trace;
  // Of this round and the one before, or of all that are not settled; old and new buffers.
  const std::uint64_t rounds = shape.taken_back ? 3 : 2;
  cost.resident =
      (rounds + 1) * anchor + 4 * trace + rounds * contributors * payload + 2 * floats + 2 * feedback + sums;
  cost.sent = cost.received = others * payload;
  return cost;
}

std::uint64_t written_bytes(const RoundCost& cost, std::uint64_t spool_memory) {
  return cost.kept + (cost.resident <= spool_memory ? 0 : cost.temporary);
}

}  // namespace neuroshard::rounds
