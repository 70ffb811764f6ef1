#include "core/chain/evidence.h"

#include <utility>

#include "core/chain/detail/formats.h"

namespace neuroshard::chain {
namespace {

// Each kind is written as what both halves share (the place) and twice what excludes each other (the half).
// The numbers of the kinds are the alternatives' positions, from 1.

void append_place(Bytes& bytes, const TwoVotes& what) {
  bytes.push_back(static_cast<std::uint8_t>(what.first.vote.step));
  append_le(bytes, what.first.vote.height);
  append_array(bytes, what.first.vote.previous);
  append_le(bytes, what.first.vote.view);
  append_le(bytes, what.first.voter);
}
void append_place(Bytes& bytes, const TwoVectors& what) {
  append_array(bytes, what.first.opening);
  append_le(bytes, what.first.round);
  append_le(bytes, what.first.voter);
}
void append_place(Bytes& bytes, const TwoContributions& what) {
  append_array(bytes, what.opening);
  append_le(bytes, what.round);
}

// The signed fields besides the place.
Bytes signed_half(const SignedVote& half) {
  return Bytes(half.vote.block.begin(), half.vote.block.end());
}
Bytes signed_half(const VectorClaim& half) {
  return Bytes(half.content.begin(), half.content.end());
}
Bytes signed_half(const ContributionEntry& half) {
  Bytes bytes;
  append_le(bytes, half.tokens);
  append_array(bytes, half.work);
  append_array(bytes, half.batches);
  append_array(bytes, half.reveal);
  return bytes;
}

template <class Two>
Evidence in_order(const crypto::PublicKey& node, Two two) {
  if (signed_half(two.second) < signed_half(two.first)) std::swap(two.first, two.second);
  return {node, std::move(two)};
}

bool same_place(const TwoVotes& what) {
  const Vote &a = what.first.vote, &b = what.second.vote;
  return (a.step == VoteStep::Prepare || a.step == VoteStep::Commit) && a.step == b.step &&
         a.height == b.height && a.previous == b.previous && a.view == b.view &&
         what.first.voter == what.second.voter;
}
bool same_place(const TwoVectors& what) {
  return what.first.opening == what.second.opening && what.first.round == what.second.round &&
         what.first.voter == what.second.voter;
}
bool same_place(const TwoContributions& what) {
  return what.first.member == 0 && what.second.member == 0;
}

template <class Two>
bool has_canonical_halves(const Two& what) {
  return same_place(what) && signed_half(what.first) < signed_half(what.second);
}

bool signatures_hold(const TwoVotes& what, const crypto::PublicKey& node, const Hash256& network) {
  return vote_holds(what.first, node, network) && vote_holds(what.second, node, network);
}
bool signatures_hold(const TwoVectors& what, const crypto::PublicKey& node, const Hash256& network) {
  return claim_holds(what.first, node, network) && claim_holds(what.second, node, network);
}
bool signatures_hold(const TwoContributions& what, const crypto::PublicKey& node, const Hash256& network) {
  return entry_holds(what.first, what.opening, what.round, node, network) &&
         entry_holds(what.second, what.opening, what.round, node, network);
}

TwoVotes read_votes(Reader& in) {
  TwoVotes what;
  Vote place;
  const auto step = in.number<std::uint8_t>();
  if (step != static_cast<std::uint8_t>(VoteStep::Prepare) &&
      step != static_cast<std::uint8_t>(VoteStep::Commit))
    in.fail();
  else
    place.step = static_cast<VoteStep>(step);
  place.height = in.number<std::uint64_t>();
  place.previous = in.array<Hash256>();
  place.view = in.number<std::uint32_t>();
  const auto voter = in.number<std::uint32_t>();
  for (SignedVote* half : {&what.first, &what.second}) {
    half->vote = place;
    half->voter = voter;
    half->vote.block = in.array<Hash256>();
    half->signature = in.array<crypto::Signature>();
  }
  return what;
}

TwoVectors read_vectors(Reader& in) {
  TwoVectors what;
  what.first.opening = what.second.opening = in.array<Hash256>();
  what.first.round = what.second.round = in.number<std::uint64_t>();
  what.first.voter = what.second.voter = in.number<std::uint32_t>();
  for (VectorClaim* half : {&what.first, &what.second}) {
    half->content = in.array<Hash256>();
    half->signature = in.array<crypto::Signature>();
  }
  return what;
}

TwoContributions read_contributions(Reader& in) {
  TwoContributions what;
  what.opening = in.array<Hash256>();
  what.round = in.number<std::uint64_t>();
  for (ContributionEntry* half : {&what.first, &what.second}) {
    half->tokens = in.number<std::uint64_t>();
    half->work = in.array<Hash256>();
    half->batches = in.array<Hash256>();
    half->reveal = in.array<Hash256>();
    half->signature = in.array<crypto::Signature>();
  }
  return what;
}

}  // namespace

Evidence evidence_of(const crypto::PublicKey& node, const SignedVote& a, const SignedVote& b) {
  return in_order(node, TwoVotes{a, b});
}

Evidence evidence_of(const crypto::PublicKey& node, const Vector& a, const Vector& b) {
  return in_order(node, TwoVectors{claim_of(a), claim_of(b)});
}

Evidence evidence_of(const Contribution& a, const Contribution& b) {
  return evidence_of(a, entry_of(b, 0));
}

Evidence evidence_of(const Contribution& a, ContributionEntry b) {
  b.member = 0;
  return in_order(a.node, TwoContributions{a.opening, a.round, entry_of(a, 0), b});
}

bool evidence_holds(const Evidence& evidence, const Hash256& network) {
  return std::visit(
      [&](const auto& what) {
        return has_canonical_halves(what) && signatures_hold(what, evidence.node, network);
      },
      evidence.what);
}

const Hash256& anchor_block(const Evidence& evidence) {
  if (const auto* votes = std::get_if<TwoVotes>(&evidence.what)) return votes->first.vote.previous;
  if (const auto* vectors = std::get_if<TwoVectors>(&evidence.what)) return vectors->first.opening;
  return std::get<TwoContributions>(evidence.what).opening;
}

Bytes encode_evidence(const Evidence& evidence) {
  Bytes bytes;
  append_array(bytes, evidence.node);
  bytes.push_back(static_cast<std::uint8_t>(evidence.what.index() + 1));
  std::visit(
      [&bytes](const auto& what) {
        append_place(bytes, what);
        for (const auto* half : {&what.first, &what.second}) {
          append_array(bytes, signed_half(*half));
          append_array(bytes, half->signature);
        }
      },
      evidence.what);
  return bytes;
}

Expected<Evidence> decode_evidence(ByteSpan bytes) {
  Reader in(bytes);
  Evidence evidence;
  evidence.node = in.array<crypto::PublicKey>();
  switch (in.number<std::uint8_t>()) {
    case 1: evidence.what = read_votes(in); break;
    case 2: evidence.what = read_vectors(in); break;
    case 3: evidence.what = read_contributions(in); break;
    default: in.fail();
  }
  const bool canonical =
      std::visit([](const auto& what) { return has_canonical_halves(what); }, evidence.what);
  if (!in.at_end() || !canonical) return corrupt("evidence can't be read");
  return evidence;
}

Hash256 evidence_id(const Evidence& evidence) {
  return tagged_hash("neuroshard/chain/evidence/1", encode_evidence(evidence));
}

}  // namespace neuroshard::chain
