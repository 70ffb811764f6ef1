// A person's decisions about the members of the network: part of the seam (node.h), with its rules about threads and
// errors. Unsupported: this node trains alone.
#pragma once

#include "core/node/continuation.h"
#include "core/node/node.h"
#include "core/node/revocation.h"
#include "core/node/what_if.h"

namespace neuroshard::node {

class MemberDecisions {
 public:
  virtual ~MemberDecisions() = default;
  // This node's person goes on without members that are gone. The reply comes once the proposal is on its way;
  // the snapshot shows the block. Denied, NotFound, Unavailable: why not, and what to do.
  virtual Expected<void> continue_network(const ContinuationRequest& request,
                                          Reply<ContinuationReply> reply) = 0;
  // A wallet's owner revokes a node key: first the reply says what to sign, then, with the signature, that it is
  // on its way. Errors as above.
  virtual Expected<void> revoke_node(const RevocationRequest& request, Reply<RevocationReply> reply) = 0;
  // Answers what a decision would change, and changes nothing. InvalidArgument: less than 500 MB, or more than a member can offer.
  // Unavailable: this node is no member yet.
  virtual Expected<void> query_what_if(const WhatIfQuery& query, Reply<WhatIf> reply) = 0;
};

}  // namespace neuroshard::node
