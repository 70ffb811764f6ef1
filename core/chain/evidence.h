// Proof against a member: that it signed two things of which an honest node signs one: votes, vectors or contributions of
// the same place in the same history (docs/protocol/chain.md). Everybody checks a proof by itself; nobody
// votes on guilt. Both halves name the same previous or opening block. So a signature in another history, or
// from before a disk was restored under a new node key, is no part of a proof.
//
// Only what the signatures cover is in it, so its size is small and fixed. Canonical bytes: what both halves
// share comes once, and the half with the lower encoding comes first. Threads: any. Errors: Corrupt.
#pragma once

#include <optional>
#include <variant>

#include "core/chain/attestation.h"
#include "core/chain/contribution.h"
#include "core/chain/vote.h"

namespace neuroshard::chain {

struct TwoVotes {  // prepares or commits of the same height, previous block and view; different blocks
  SignedVote first, second;
  friend bool operator==(const TwoVotes&, const TwoVotes&) = default;
};
struct TwoVectors {  // same opening block, round and voter
  VectorClaim first, second;
  friend bool operator==(const TwoVectors&, const TwoVectors&) = default;
};
struct TwoContributions {  // what blocks would carry of them
  Hash256 opening{};
  std::uint64_t round = 0;
  ContributionEntry first, second;  // their member number is zero: the key names the node
  friend bool operator==(const TwoContributions&, const TwoContributions&) = default;
};
// An attested result that is wrong. The proof is too large for a block: whoever votes for the block has fetched it by its
// hash and verified it (core/rounds/row_proof.h).
struct FalseResult {
  AttestedRow attested;
  Hash256 proof{};  // SHA-256
  std::uint32_t proof_bytes = 0;
  friend bool operator==(const FalseResult&, const FalseResult&) = default;
};
struct Evidence {
  crypto::PublicKey node{};
  std::variant<TwoVotes, TwoVectors, TwoContributions, FalseResult> what;
  friend bool operator==(const Evidence&, const Evidence&) = default;
};
// Evidence that says nothing without its proof.
inline bool is_accusation(const Evidence& evidence) {
  return std::holds_alternative<FalseResult>(evidence.what);
}
inline constexpr std::size_t max_evidence_bytes = 640;

// Two things of the same place that exclude each other; which is a and which b does not matter.
Evidence evidence_of(const crypto::PublicKey& node, const SignedVote& a, const SignedVote& b);
Evidence evidence_of(const crypto::PublicKey& node, const Vector& a, const Vector& b);
Evidence evidence_of(const Contribution& a, const Contribution& b);
Evidence evidence_of(const Contribution& a, ContributionEntry b);
// A voter's vote, and its signature in a quorum for another block in the same place; nothing: there is none.
std::optional<Evidence> contradiction(const crypto::PublicKey& node, const SignedVote& vote,
                                      const Quorum& quorum);
// Cheap checks first, then the signatures. Whether the history is this one is for the registry:
// anchor_block() is the previous or opening block that the signatures name. Of a false result: that it was attested; its
// proof is not looked at.
bool evidence_holds(const Evidence& evidence, const Hash256& network);
const Hash256& anchor_block(const Evidence& evidence);
Bytes encode_evidence(const Evidence& evidence);
Expected<Evidence> decode_evidence(ByteSpan bytes);

}  // namespace neuroshard::chain
