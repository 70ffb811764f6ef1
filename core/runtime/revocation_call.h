// A wallet owner's call to revoke a node key: answers what the wallet has to sign, and sends what it has signed.
#pragma once

#include "core/chain/node.h"
#include "core/node/revocation.h"

namespace neuroshard::runtime {

// A draft for the wallet to sign, or the block that has the revocation of the named node already. tip: the newest
// block. InvalidArgument: a name is none, or names several. NotFound: no member has it. Denied: the node works for
// another wallet, or no block could contain the revocation.
Expected<node::RevocationReply> draft_revocation(const chain::ChainRules& rules, const chain::ChainTip& tip,
                                                 const node::RevocationRequest& request);
// The same, and sends a signed revocation. Threads: the chain's.
Expected<node::RevocationReply> revoke_node(chain::ChainNode& node, const chain::ChainRules& rules,
                                            const node::RevocationRequest& request);

}  // namespace neuroshard::runtime
