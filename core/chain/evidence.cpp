#include "core/chain/evidence.h"

#include <algorithm>
#include <utility>

#include "core/chain/ascending.h"
#include "core/chain/detail/formats.h"

namespace neuroshard::chain {
namespace {

// Each kind is written as what both halves share (the place) and twice what excludes each other (the half).
// The numbers of the kinds are the alternatives' positions, from 1.

// But for the step, which comes first.
auto vote_place(auto& half) {
  return std::tie(half.vote.height, half.vote.previous, half.vote.view, half.voter);
}
auto vector_place(auto& half) {
  return std::tie(half.opening, half.round, half.voter);
}
auto contribution_fields(auto& half) {
  return std::tie(half.tokens, half.work, half.batches, half.reveal);
}

void append_place(Bytes& bytes, const TwoVotes& what) {
  bytes.push_back(static_cast<std::uint8_t>(what.first.vote.step));
  append_record(bytes, vote_place(what.first));
}
void append_place(Bytes& bytes, const TwoVectors& what) {
  append_record(bytes, vector_place(what.first));
}
void append_place(Bytes& bytes, const TwoContributions& what) {
  append_record(bytes, std::tie(what.opening, what.round));
}

// The signed fields besides the place.
Bytes signed_half(const SignedVote& half) {
  return Bytes(half.vote.block.begin(), half.vote.block.end());
}
Bytes signed_half(const VectorClaim& half) {
  return Bytes(half.content.begin(), half.content.end());
}
Bytes signed_half(const ContributionEntry& half) {
  return bytes_of(contribution_fields(half));
}

template <class Two>
Evidence in_order(const crypto::PublicKey& node, Two two) {
  if (signed_half(two.second) < signed_half(two.first)) std::swap(two.first, two.second);
  return {node, std::move(two)};
}

bool same_place(const TwoVotes& what) {
  const VoteStep step = what.first.vote.step;
  return (step == VoteStep::Prepare || step == VoteStep::Commit) && step == what.second.vote.step &&
         vote_place(what.first) == vote_place(what.second);
}
bool same_place(const TwoVectors& what) {
  return vector_place(what.first) == vector_place(what.second);
}
bool same_place(const TwoContributions& what) {
  return what.first.member == 0 && what.second.member == 0;
}

template <class Two>
bool is_canonical(const Two& what) {
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

// row path of at most 1,024 rows.
constexpr std::size_t most_path = 10;

bool is_canonical(const FalseResult& what) {
  return !what.attested.result.carried && what.attested.place < what.attested.rows &&
         what.attested.path.size() <= most_path && what.proof_bytes > 0;
}
bool signatures_hold(const FalseResult& what, const crypto::PublicKey& node, const Hash256& network) {
  return attested_row_holds(what.attested, node, network);
}

auto attested_fields(auto& attested) {
  return std::tie(attested.opening, attested.round, attested.voter, attested.place, attested.rows);
}

template <class Two>
void append_content(Bytes& bytes, const Two& what) {
  append_place(bytes, what);
  for (const auto* half : {&what.first, &what.second}) {
    append_array(bytes, signed_half(*half));
    append_array(bytes, half->signature);
  }
}
void append_content(Bytes& bytes, const FalseResult& what) {
  append_record(bytes, attested_fields(what.attested));
  append_result(bytes, what.attested.result);
  bytes.push_back(static_cast<std::uint8_t>(what.attested.path.size()));
  for (const Hash256& beside : what.attested.path) append_array(bytes, beside);
  append_array(bytes, what.attested.signature);
  append_record(bytes, std::tie(what.proof, what.proof_bytes));
}

FalseResult read_false_result(ByteReader& in) {
  FalseResult what;
  in.read(attested_fields(what.attested));
  what.attested.result = read_result(in);
  what.attested.path.resize(std::min<std::size_t>(in.number<std::uint8_t>(), most_path + 1));
  for (Hash256& beside : what.attested.path) beside = in.array<Hash256>();
  what.attested.signature = in.array<crypto::Signature>();
  in.read(std::tie(what.proof, what.proof_bytes));
  return what;
}

TwoVotes read_votes(ByteReader& in) {
  TwoVotes what;
  const auto step = in.number<std::uint8_t>();
  if (step != static_cast<std::uint8_t>(VoteStep::Prepare) &&
      step != static_cast<std::uint8_t>(VoteStep::Commit))
    in.fail();
  else
    what.first.vote.step = static_cast<VoteStep>(step);
  in.read(vote_place(what.first));
  what.second = what.first;
  for (SignedVote* half : {&what.first, &what.second}) in.read(std::tie(half->vote.block, half->signature));
  return what;
}

TwoVectors read_vectors(ByteReader& in) {
  TwoVectors what;
  in.read(vector_place(what.first));
  what.second = what.first;
  for (VectorClaim* half : {&what.first, &what.second}) in.read(std::tie(half->content, half->signature));
  return what;
}

TwoContributions read_contributions(ByteReader& in) {
  TwoContributions what;
  in.read(std::tie(what.opening, what.round));
  for (ContributionEntry* half : {&what.first, &what.second}) {
    in.read(contribution_fields(*half));
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

std::optional<Evidence> contradiction(const crypto::PublicKey& node, const SignedVote& vote,
                                      const Quorum& quorum) {
  const Vote& other = quorum;
  Vote same_place = vote.vote;
  same_place.block = quorum.block;
  if (vote.vote.block == quorum.block || !(same_place == other)) return std::nullopt;
  const VoterSignature* own = find_by(quorum.signatures, &VoterSignature::voter, vote.voter);
  if (own == nullptr) return std::nullopt;
  return evidence_of(node, vote, SignedVote{other, own->voter, own->signature});
}

bool evidence_holds(const Evidence& evidence, const Hash256& network) {
  return std::visit(
      [&](const auto& what) { return is_canonical(what) && signatures_hold(what, evidence.node, network); },
      evidence.what);
}

const Hash256& anchor_block(const Evidence& evidence) {
  if (const auto* votes = std::get_if<TwoVotes>(&evidence.what)) return votes->first.vote.previous;
  if (const auto* vectors = std::get_if<TwoVectors>(&evidence.what)) return vectors->first.opening;
  if (const auto* result = std::get_if<FalseResult>(&evidence.what)) return result->attested.opening;
  return std::get<TwoContributions>(evidence.what).opening;
}

Bytes encode_evidence(const Evidence& evidence) {
  Bytes bytes;
  append_array(bytes, evidence.node);
  bytes.push_back(static_cast<std::uint8_t>(evidence.what.index() + 1));
  std::visit([&bytes](const auto& what) { append_content(bytes, what); }, evidence.what);
  return bytes;
}

Expected<Evidence> decode_evidence(ByteSpan bytes) {
  ByteReader in(bytes);
  Evidence evidence;
  evidence.node = in.array<crypto::PublicKey>();
  switch (in.number<std::uint8_t>()) {
    case 1: evidence.what = read_votes(in); break;
    case 2: evidence.what = read_vectors(in); break;
    case 3: evidence.what = read_contributions(in); break;
    case 4: evidence.what = read_false_result(in); break;
    default: in.fail();
  }
  const bool canonical = std::visit([](const auto& what) { return is_canonical(what); }, evidence.what);
  if (!in.at_end() || !canonical) return corrupt("evidence can't be read");
  return evidence;
}

}  // namespace neuroshard::chain
