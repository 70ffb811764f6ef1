#include "core/chain/vote.h"

#include "core/base/check.h"
#include "core/chain/ascending.h"
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

// All but the step.
auto vote_fields(auto& vote) {
  return std::tie(vote.height, vote.previous, vote.view, vote.block);
}

// The step is the signature's purpose, the voter its key.
Bytes signed_part(const Vote& vote) {
  return bytes_of(vote_fields(vote));
}

void append_vote(Bytes& bytes, const Vote& vote) {
  bytes.push_back(static_cast<std::uint8_t>(vote.step));
  append_record(bytes, vote_fields(vote));
}

// A vote without views has view 0.
void read_vote(ByteReader& in, Vote* vote) {
  const auto step = in.number<std::uint8_t>();
  if (step < 1 || step > static_cast<std::uint8_t>(VoteStep::Genesis)) return in.fail();
  vote->step = static_cast<VoteStep>(step);
  in.read(vote_fields(*vote));
  if (vote->step >= VoteStep::Succession && vote->view != 0) in.fail();
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
  append_vote(bytes, vote.vote);
  append_record(bytes, std::tie(vote.voter, vote.signature));
  return bytes;
}

Expected<SignedVote> decode_vote(ByteSpan bytes) {
  ByteReader in(bytes);
  SignedVote vote;
  read_vote(in, &vote.vote);
  in.read(std::tie(vote.voter, vote.signature));
  if (!in.at_end()) return corrupt("a vote can't be read");
  return vote;
}

Bytes encode_quorum(const Quorum& quorum) {
  Bytes bytes;
  bytes.reserve(signed_vote_bytes + quorum.signatures.size() * voter_signature_bytes);
  append_vote(bytes, quorum);
  append_le(bytes, static_cast<std::uint32_t>(quorum.signatures.size()));
  for (const VoterSignature& each : quorum.signatures)
    append_record(bytes, std::tie(each.voter, each.signature));
  return bytes;
}

Expected<Quorum> decode_quorum(ByteSpan bytes) {
  ByteReader in(bytes);
  Quorum quorum;
  read_vote(in, &quorum);
  quorum.signatures.resize(in.count(voter_signature_bytes, max_committee));
  for (VoterSignature& each : quorum.signatures) in.read(std::tie(each.voter, each.signature));
  if (!is_ascending(quorum.signatures, &VoterSignature::voter)) in.fail();
  if (!in.at_end()) return corrupt("the votes for a block can't be read");
  return quorum;
}

Bytes encode_certificate(const Certificate& certificate) {
  Bytes bytes;
  append_part(bytes, encode_quorum(certificate.commits));
  append_flag(bytes, certificate.lock.has_value());
  if (certificate.lock) append_array(bytes, encode_quorum(*certificate.lock));
  return bytes;
}

Expected<Certificate> decode_certificate(ByteSpan bytes) {
  ByteReader in(bytes);
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
