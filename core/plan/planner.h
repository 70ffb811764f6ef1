// The plan of who holds which slots (docs/protocol/placement.md): a pure function of the chain, the peers, the beacon and the
// present plan. Every node that computes it gets the same plan: peers are taken in the order of their ids, sums have a
// fixed order, the searches count steps and never read a clock.
//
// Memory is a hard limit. First, as many units as possible have two distinct owners; then the throughput (schedule.h) is as
// large as the searches find, where missing owners beyond two count against it. Every peer that fits any unit holds some,
// so further peers become replicas. Cuts are common boundaries of stages. With few peers a second search allows any range;
// with very few, all plans are tried.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/bytes.h"
#include "core/base/expected.h"
#include "core/plan/bound.h"
#include "core/plan/chain.h"

namespace neuroshard::plan {

struct Holding {
  std::string id;
  UnitRange range;
  bool dealt = false;
};

struct PlanOptions {
  // Resident size of a program with the compute module, without a model. Not available for ranges.
  std::uint64_t baseline_bytes = program_bytes;
  // The present plan stays unless another one has so much more throughput.
  double hysteresis = 0.05;
  // Bytes that present holders may fetch because of one new plan; newcomers fetch their own range beyond it. A unit
  // that misses owners may cost more.
  std::uint64_t migration_bytes = std::numeric_limits<std::uint64_t>::max();
  // Distinct owners that each unit should have; it must have least_replicas. The search divides the throughput by
  // 1 + t / units: a unit adds 1 to t if it misses one owner, 3 if it misses two, 6 if it misses three.
  std::uint32_t replicas = least_replicas;
  // Part of the peers that have to fit a layer; it limits the shape (placeable.h).
  double useful_share = 0.75;
  // Part of the steps of each search that counts steps: less is faster, and the plans are worse.
  double effort = 1;
  // Throughput that dealing by the beacon may cost in all.
  double dealing_loss = 0.01;
};

struct PlanRequest {
  const Chain* chain = nullptr;
  std::vector<PlanPeer> peers;  // any order
  Hash256 beacon{};
  // Of the same chain; holders that are no longer peers, or no longer fit, are ignored.
  std::vector<Holding> present;
  PlanOptions options;
};

enum class Reason : std::uint8_t {
  Kept,      // as in the present plan
  Joined,    // new in the plan
  Moved,     // holds another range than before
  Dealt,     // the beacon chose it for its stage
  TooSmall,  // its memory fits no unit
};
std::string_view to_string(Reason reason);

struct PlacedPeer {
  std::string id;
  UnitRange range;          // empty: holds nothing
  double rate = 0;          // tokens/s through the unit that it serves most, at the plan's throughput
  double used_percent = 0;  // of its speed, at the plan's throughput
  bool dealt = false;       // one holder of each stage is
  Reason reason = Reason::Joined;
  std::uint64_t memory_bytes = 0;  // of its range
  std::uint64_t fetch_bytes = 0;   // what it has to fetch for this plan
};

// A cut: the end of some range. Tokens pass from a holder of the unit before it to one of the unit after it.
struct BoundaryLimit {
  std::uint32_t unit = 0;        // the first one after it
  double tokens_per_second = 0;  // that the lines of all holders on either side carry, the smaller sum
};

struct Plan {
  std::vector<PlacedPeer> peers;  // ascending ids, one per peer of the request
  double throughput = 0;          // tokens/s
  Bound bound;
  std::uint32_t bottleneck = 0;  // a unit at which the throughput ends
  std::vector<BoundaryLimit> boundaries;
  std::uint32_t least_owners = 0;       // distinct owners of the unit that has fewest
  std::vector<UnitRange> short_ranges;  // units with fewer owners than two
  std::uint64_t moved_bytes = 0;        // that present holders fetch
  std::uint64_t joined_bytes = 0;       // that newcomers fetch
};

// Errors: InvalidArgument names the peer and its value. Exhausted: no plan holds every unit; the message names the
// first units without a holder and the bytes that are missing there.
Expected<Plan> make_plan(const PlanRequest& request);

}  // namespace neuroshard::plan
