// Whether signatures hold. A node finds out for itself, as here; a simulation of thousands of nodes in one
// process finds out once for all that receive the same bytes. Signatures are checked after all cheaper checks.
#pragma once

#include "core/chain/attestation.h"
#include "core/chain/contribution.h"
#include "core/chain/evidence.h"
#include "core/chain/statements.h"
#include "core/chain/vote.h"

namespace neuroshard::chain {

struct Heartbeat;  // messages.h

class SignatureChecks {
 public:
  virtual ~SignatureChecks() = default;
  virtual bool vote(const SignedVote& vote, const crypto::PublicKey& node, const Hash256& network) {
    return vote_holds(vote, node, network);
  }
  // All signatures of a quorum. nodes: the keys of its signers, in their order.
  virtual bool quorum(const Quorum& quorum, Span<const crypto::PublicKey> nodes, const Hash256& network);
  virtual bool statement(const Statement& statement, const Hash256& network) {
    return statement_holds(statement, network);
  }
  virtual bool entry(const ContributionEntry& entry, const Hash256& opening, std::uint64_t round,
                     const crypto::PublicKey& node, const Hash256& network) {
    return entry_holds(entry, opening, round, node, network);
  }
  virtual bool vector(const VectorClaim& claim, const crypto::PublicKey& node, const Hash256& network) {
    return claim_holds(claim, node, network);
  }
  virtual bool attestation(const Attestation& attestation, const crypto::PublicKey& node,
                           const Hash256& network) {
    return attestation_holds(attestation, node, network);
  }
  virtual bool evidence(const Evidence& evidence, const Hash256& network) {
    return evidence_holds(evidence, network);
  }
  virtual bool heartbeat(const Heartbeat& heartbeat, const Hash256& network);
};

}  // namespace neuroshard::chain
