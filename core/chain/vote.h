// Votes on blocks and the quorums that they make (docs/protocol/chain.md). A vote binds to height and
// previous block, so it is valid in one history only. Signers are named by their number in the registry.
//
// Canonical bytes; decode checks no signature. Threads: any. Errors: Corrupt.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "core/base/bytes.h"
#include "core/base/expected.h"
#include "core/crypto/keys.h"

namespace neuroshard::chain {

// Succession and Genesis are signed by every wallet's node that they name, without views (view 0).
enum class VoteStep : std::uint8_t { Prepare = 1, Commit = 2, Succession = 3, Genesis = 4 };

struct Vote {
  VoteStep step = VoteStep::Prepare;
  std::uint64_t height = 0;
  Hash256 previous{};
  std::uint32_t view = 0;
  Hash256 block{};
  friend bool operator==(const Vote&, const Vote&) = default;
};
struct SignedVote {
  Vote vote;
  std::uint32_t voter = 0;        // number in the registry
  crypto::Signature signature{};  // purpose ChainPrepare, ChainCommit, ChainSuccession or ChainGenesis
  friend bool operator==(const SignedVote&, const SignedVote&) = default;
};
// Signed are height, previous block, view and block; the step is the purpose. The voter's number is not
// signed, its key is what verifies.
inline constexpr std::size_t signed_vote_bytes = 1 + 8 + 32 + 4 + 32 + 4 + 64;
SignedVote sign_vote(const Vote& vote, std::uint32_t voter, const crypto::KeyPair& node,
                     const Hash256& network);
bool vote_holds(const SignedVote& vote, const crypto::PublicKey& node, const Hash256& network);
Bytes encode_vote(const SignedVote& vote);
Expected<SignedVote> decode_vote(ByteSpan bytes);

struct VoterSignature {
  std::uint32_t voter = 0;
  crypto::Signature signature{};
  friend bool operator==(const VoterSignature&, const VoterSignature&) = default;
};
// One vote with the signatures of many, ascending by voter. Of prepares: a lock. Of commits: half of a
// certificate.
struct Quorum : Vote {
  std::vector<VoterSignature> signatures;
  friend bool operator==(const Quorum&, const Quorum&) = default;
};
// The vote of one of the signatures.
inline SignedVote vote_of(const Quorum& quorum, const VoterSignature& signature) {
  return {quorum, signature.voter, signature.signature};
}
Bytes encode_quorum(const Quorum& quorum);
Expected<Quorum> decode_quorum(ByteSpan bytes);

// Proves that a block is the one of its height. Commits of more than two thirds of the active units; or of the
// stall quorum, and then the block is presence-only, or `lock` has prepares of more than two thirds for it. Of
// a succession block and of a genesis: the signatures of all nodes that the block names.
struct Certificate {
  Quorum commits;
  std::optional<Quorum> lock;
  friend bool operator==(const Certificate&, const Certificate&) = default;
};
using CertificatePtr = std::shared_ptr<const Certificate>;
Bytes encode_certificate(const Certificate& certificate);
Expected<Certificate> decode_certificate(ByteSpan bytes);

}  // namespace neuroshard::chain
