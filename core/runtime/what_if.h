// The changes that would follow if this node offered another amount of memory or left (core/node/what_if.h): the rules of the
// chain and the plan of the parts, applied to the registry as it would be then (core/chain/supposed.h).
//
// A pure function. Threads: any.
#pragma once

#include <vector>

#include "core/base/clock.h"
#include "core/base/expected.h"
#include "core/chain/registry.h"
#include "core/node/what_if.h"
#include "core/runtime/memory_report.h"

namespace neuroshard::runtime {

struct WhatIfFacts {
  const chain::ChainRules& rules;
  const chain::Registry& registry;  // of the newest block
  const MemoryReport& memory;       // of the same network
  std::vector<double> part_work;    // FLOP of a token, by part; empty: every member holds the whole model
  const net::NodeId& self;
  WallTime wall{};
};

// InvalidArgument: the memory is less than 500 MB, or more than a member can offer. Unavailable: this node is no member.
Expected<node::WhatIf> what_if(const node::WhatIfQuery& query, const WhatIfFacts& facts);

}  // namespace neuroshard::runtime
