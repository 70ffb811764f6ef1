// Whether what others signed in a round holds. A node finds out for itself, as here; a simulation of
// thousands of nodes in one process finds out once for all that hear the same (sim/shared_commons.h).
#pragma once

#include "core/rounds/messages.h"

namespace neuroshard::rounds {

class SignatureChecks {
 public:
  virtual ~SignatureChecks() = default;
  virtual bool holds(const RoundVote& vote, const crypto::PublicKey& key, const crypto::Signature& signature,
                     const Hash256& network) {
    return vote_holds(vote, key, signature, network);
  }
  virtual bool holds(const Contribution& contribution, const Hash256& network) {
    return contribution_holds(contribution, network);
  }
};

}  // namespace neuroshard::rounds
