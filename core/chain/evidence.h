// Proof that a member signed two things of which an honest node signs one: votes, vectors or contributions of
// the same place in the same history (docs/protocol/chain.md). Everybody checks a proof by itself; nobody
// votes on guilt. Both halves name the same previous or opening block. So a signature in another history, or
// from before a disk was restored under a new node key, is no part of a proof.
//
// Only what the signatures cover is in it, so its size is small and fixed. Canonical bytes: what both halves
// share comes once, and the half with the lower encoding comes first. Threads: any. Errors: Corrupt.
#pragma once

#include <optional>
#include <variant>

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
struct Evidence {
  crypto::PublicKey node{};
  std::variant<TwoVotes, TwoVectors, TwoContributions> what;
  friend bool operator==(const Evidence&, const Evidence&) = default;
};
inline constexpr std::size_t max_evidence_bytes = 512;

// Two things of the same place that exclude each other; which is a and which b does not matter.
Evidence evidence_of(const crypto::PublicKey& node, const SignedVote& a, const SignedVote& b);
Evidence evidence_of(const crypto::PublicKey& node, const Vector& a, const Vector& b);
Evidence evidence_of(const Contribution& a, const Contribution& b);
Evidence evidence_of(const Contribution& a, ContributionEntry b);
// A voter's vote, and its signature in a quorum for another block in the same place; nothing: there is none.
std::optional<Evidence> contradiction(const crypto::PublicKey& node, const SignedVote& vote,
                                      const Quorum& quorum);
// Cheap checks first, then both signatures. Whether the history is this one is for the registry:
// anchor_block() is the previous or opening block that both halves name.
bool evidence_holds(const Evidence& evidence, const Hash256& network);
const Hash256& anchor_block(const Evidence& evidence);
Bytes encode_evidence(const Evidence& evidence);
Expected<Evidence> decode_evidence(ByteSpan bytes);

}  // namespace neuroshard::chain
