// The nodes that `plan --peers` reads, and a change that `--what-if` describes.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/base/bytes.h"
#include "core/base/expected.h"
#include "core/plan/planner.h"

namespace neuroshard::app {

inline constexpr std::uint64_t max_plan_file_bytes = 64u << 20;

struct PlanFile {
  std::vector<plan::PlanPeer> peers;   // speeds are counted ones
  std::vector<plan::Holding> present;  // of peers with a "range"
};

// {"peers": [{"id", "memory", "speed" or "seconds_per_layer", …}, …]} or the list alone; docs/guide/plan.md has the fields.
// layer_work: FLOP of one token through a layer of the smallest shape, for "seconds_per_layer".
// Any bytes are safe. Errors: InvalidArgument names the line and column, or the peer's place in the list and the field.
// Exhausted: too large.
Expected<PlanFile> parse_plan_file(ByteSpan bytes, double layer_work);

// "memory=8GiB,speed=2T,up=1MB,down=4MB,owner=me" joins a node; "leave=ID" removes one. Values that are not given are the
// lower medians of the peers. Errors: InvalidArgument, NotFound for an unknown id.
struct PlanChange {
  std::optional<plan::PlanPeer> joins;
  std::string leaves;  // an id, or empty
};
Expected<PlanChange> parse_plan_change(const std::string& text, const std::vector<plan::PlanPeer>& peers);

}  // namespace neuroshard::app
