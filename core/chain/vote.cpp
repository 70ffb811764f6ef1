#include "core/chain/vote.h"

#include "core/base/check.h"
#include "core/chain/detail/formats.h"
#include "core/chain/rules.h"

namespace neuroshard::chain {
namespace {

constexpr std::size_t voter_signature_bytes = 4 + 64;

crypto::Purpose purpose_of(VoteStep step) {
  switch (step) {
    case VoteStep::Prepare: return crypto::Purpose::ChainPrepare;
    case VoteStep::Commit: return crypto::Purpose::ChainCommit;
    case VoteStep::Succession: return crypto::Purpose::ChainSuccession;
    case VoteStep::Genesis: return crypto::Purpose::ChainGenesis;
  }
  NS_CHECK(false);
  return crypto::Purpose::ChainPrepare;
}

// The step is the signature's purpose, the voter its key.
Bytes signed_part(const Vote& vote) {
  Bytes bytes;
  append_le(bytes, vote.height);
  append_array(bytes, vote.previous);
  append_le(bytes, vote.view);
  append_array(bytes, vote.block);
  return bytes;
}

template <class Voted>
void append_head(Bytes& bytes, const Voted& voted) {
  bytes.push_back(static_cast<std::uint8_t>(voted.step));
  append_le(bytes, voted.height);
  append_array(bytes, voted.previous);
  append_le(bytes, voted.view);
  append_array(bytes, voted.block);
}

// Votes and quorums begin alike. A vote without views has view 0.
template <class Voted>
void read_head(Reader& in, Voted* voted) {
  const auto step = in.number<std::uint8_t>();
  if (step < 1 || step > static_cast<std::uint8_t>(VoteStep::Genesis)) return in.fail();
  voted->step = static_cast<VoteStep>(step);
  voted->height = in.number<std::uint64_t>();
  voted->previous = in.array<Hash256>();
  voted->view = in.number<std::uint32_t>();
  voted->block = in.array<Hash256>();
  if (voted->step >= VoteStep::Succession && voted->view != 0) in.fail();
}

bool supports(const Quorum& lock, const Quorum& commits) {
  return commits.step == VoteStep::Commit && lock.step == VoteStep::Prepare &&
         lock.height == commits.height && lock.previous == commits.previous && lock.block == commits.block;
}

}  // namespace

SignedVote sign_vote(const Vote& vote, std::uint32_t voter, const crypto::KeyPair& node,
                     const Hash256& network) {
  return {vote, voter, node.sign(purpose_of(vote.step), network, signed_part(vote))};
}

bool vote_holds(const SignedVote& vote, const crypto::PublicKey& node, const Hash256& network) {
  return crypto::verify(node, purpose_of(vote.vote.step), network, signed_part(vote.vote), vote.signature);
}

Bytes encode_vote(const SignedVote& vote) {
  Bytes bytes;
  bytes.reserve(signed_vote_bytes);
  append_head(bytes, vote.vote);
  append_le(bytes, vote.voter);
  append_array(bytes, vote.signature);
  return bytes;
}

Expected<SignedVote> decode_vote(ByteSpan bytes) {
  Reader in(bytes);
  SignedVote vote;
  read_head(in, &vote.vote);
  vote.voter = in.number<std::uint32_t>();
  vote.signature = in.array<crypto::Signature>();
  if (!in.at_end()) return corrupt("a vote can't be read");
  return vote;
}

Bytes encode_quorum(const Quorum& quorum) {
  Bytes bytes;
  bytes.reserve(signed_vote_bytes + quorum.signatures.size() * voter_signature_bytes);
  append_head(bytes, quorum);
  append_le(bytes, static_cast<std::uint32_t>(quorum.signatures.size()));
  for (const VoterSignature& each : quorum.signatures) {
    append_le(bytes, each.voter);
    append_array(bytes, each.signature);
  }
  return bytes;
}

Expected<Quorum> decode_quorum(ByteSpan bytes) {
  Reader in(bytes);
  Quorum quorum;
  read_head(in, &quorum);
  quorum.signatures.resize(in.count(voter_signature_bytes, max_committee));
  for (std::size_t i = 0; i < quorum.signatures.size(); ++i) {
    VoterSignature& each = quorum.signatures[i];
    each.voter = in.number<std::uint32_t>();
    each.signature = in.array<crypto::Signature>();
    if (i > 0 && each.voter <= quorum.signatures[i - 1].voter) in.fail();
  }
  if (!in.at_end()) return corrupt("the votes for a block can't be read");
  return quorum;
}

Bytes encode_certificate(const Certificate& certificate) {
  Bytes bytes;
  append_part(bytes, encode_quorum(certificate.commits));
  bytes.push_back(certificate.lock ? 1 : 0);
  if (certificate.lock) append_array(bytes, encode_quorum(*certificate.lock));
  return bytes;
}

Expected<Certificate> decode_certificate(ByteSpan bytes) {
  Reader in(bytes);
  Certificate certificate;
  const ByteSpan commits = in.part();
  const bool has_lock = in.flag();
  const ByteSpan lock = in.rest();
  if (!in.good() || (!has_lock && !lock.empty())) return corrupt("a block's certificate can't be read");
  NS_ASSIGN_OR_RETURN(certificate.commits, decode_quorum(commits));
  if (certificate.commits.step == VoteStep::Prepare)
    return corrupt("a block's certificate has first votes only");
  if (has_lock) {
    NS_ASSIGN_OR_RETURN(certificate.lock, decode_quorum(lock));
    if (!supports(*certificate.lock, certificate.commits))
      return corrupt("a block's certificate has a lock on another block");
  }
  return certificate;
}

}  // namespace neuroshard::chain
