// A person's call to go on without members that are gone: names become node ids, and the decision goes to the
// chain.
#pragma once

#include <string>
#include <vector>

#include "core/chain/node.h"
#include "core/node/continuation.h"

namespace neuroshard::runtime {

// Members whose id begins with the names, which have 8 to 64 hex characters. InvalidArgument: a name is none, or
// more members than one begin with it. NotFound: no member does.
Expected<std::vector<net::NodeId>> members_named(const chain::Registry& registry,
                                                 const std::vector<std::string>& names);
// Threads: the chain's. Errors: those above and of chain::Recovery.
Expected<node::ContinuationReply> go_on(chain::ChainNode& node, const node::ContinuationRequest& request);

}  // namespace neuroshard::runtime
