// TrainingRounds: what comes from other members and goes to them.
#include <algorithm>
#include <utility>

#include "core/chain/rights.h"
#include "core/net/peer_channel.h"
#include "core/rounds/round_posts.h"
#include "core/rounds/training_rounds.h"

namespace neuroshard::rounds {
namespace {

chain::Verdict noted(chain::Verdict verdict, TrainingView& seen) {
  if (verdict != chain::Verdict::Taken && verdict != chain::Verdict::Known) ++seen.refused[verdict];
  return verdict;
}

}  // namespace

chain::Verdict TrainingRounds::on_post(const net::NodeId&, const chain::RoundsPost& post,
                                       const chain::ChainTip& tip) {
  if (!tip_ || tip.block->hash != tip_->block->hash) return chain::Verdict::Busy;
  switch (post.kind) {
    case contribution_kind: return noted(on_contribution(post.bytes), seen_);
    case vector_kind: return noted(on_vector(post.bytes), seen_);
    case attestation_kind: {
      const chain::Verdict verdict = outcomes_.take(post.bytes, *tip_);
      if (verdict == chain::Verdict::Taken) look_soon();
      return noted(verdict, seen_);
    }
    default: return noted(chain::Verdict::Malformed, seen_);
  }
}

void TrainingRounds::found(const chain::Evidence& evidence) {
  ++seen_.evidence;
  port_->add_evidence(evidence);
}

// Once for each reason: it is tried again and again.
void TrainingRounds::cannot(const Error& error) {
  const std::string reason = error.describe();
  if (std::exchange(seen_.trouble, reason) != reason) services_.logger.error("rounds", reason);
}

chain::Verdict TrainingRounds::on_contribution(ByteSpan bytes) {
  const HeldContributionPtr held = pool_.read_contribution(bytes, options_.chain.rows);
  if (!held) return chain::Verdict::Malformed;
  const auto taken = book_.take(held, *tip_);
  if (taken.evidence) found(*taken.evidence);
  if (taken.verdict != chain::Verdict::Taken && taken.verdict != chain::Verdict::Known) return taken.verdict;
  // Its payloads have a grace from now on.
  if (taken.verdict == chain::Verdict::Taken) moved_at_ = services_.clock.monotonic_now();
  show_to_candidate(taken.member);
  look_soon();
  return taken.verdict;
}

chain::Verdict TrainingRounds::on_vector(ByteSpan bytes) {
  const HeldVectorPtr held = pool_.read_vector(bytes, vectors_.most_members(*tip_->registry),
                                               options_.chain.rows_of(book_.round()).size());
  if (!held) return chain::Verdict::Malformed;
  const auto taken = vectors_.take(held, *tip_);
  if (taken.evidence) found(*taken.evidence);
  if (taken.verdict == chain::Verdict::Taken) look_soon();
  return taken.verdict;
}

chain::Verdict TrainingRounds::on_accusation(const net::NodeId& from, const chain::Evidence& evidence,
                                             const chain::ChainTip& tip) {
  if (!tip_ || tip.block->hash != tip_->block->hash) return chain::Verdict::Busy;
  return noted(accusations_.take(from, evidence, tip), seen_);
}

chain::SignedByMember TrainingRounds::signed_by(const net::NodeId& member) const {
  chain::SignedByMember held;
  if (!tip_) return held;
  const chain::MemberRecord* record = tip_->registry->find(member);
  if (record == nullptr) return held;
  if (const ContributionBook::Entry* entry = book_.find(record->number))
    held.contribution = entry->held->entry_of(record->number);
  if (const chain::Vector* own = member == self_ ? own_vector_.kept() : nullptr)
    held.vector = chain::claim_of(*own);
  else if (const HeldVector* vector = vectors_.find(record->number))
    held.vector = vector->claim();
  return held;
}

void TrainingRounds::on_call(const net::Caller& from, ByteSpan bytes, const net::Respond& respond) {
  const auto request = decode_piece_request(bytes);
  if (!request.ok()) return respond(request.error());
  if (!tip_) return respond(make_error(ErrorCode::NotFound, "this node has no history yet"));
  const auto piece_of = [&]() -> Expected<Bytes> {
    switch (request->what) {
      case PieceRequest::What::Payload:
      case PieceRequest::What::PayloadLeaves:
      case PieceRequest::What::Contribution: return exchange_.piece(from.id, *request, *tip_);
      case PieceRequest::What::Leaves:
      case PieceRequest::What::Chunk:
      case PieceRequest::What::TraceLeaves:
      case PieceRequest::What::TraceSums: return states_.piece(*request);
      case PieceRequest::What::Proof: return accusations_.piece(*request);
    }
    return piece_not_held();
  };
  const Expected<Bytes> piece = piece_of();
  if (piece.ok()) seen_.bytes_sent += piece->size();
  respond(piece);
}

}  // namespace neuroshard::rounds
