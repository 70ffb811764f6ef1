// TrainingRounds: what comes from other members and goes to them.
#include <algorithm>

#include "core/chain/rights.h"
#include "core/net/peer_channel.h"
#include "core/rounds/round_posts.h"
#include "core/rounds/training_rounds.h"

namespace neuroshard::rounds {

chain::Verdict TrainingRounds::on_post(const net::NodeId&, const chain::RoundsPost& post,
                                       const chain::ChainTip& tip) {
  if (!tip_ || tip.block->hash != tip_->block->hash) return chain::Verdict::Busy;
  switch (post.kind) {
    case contribution_kind: return refuse(on_contribution(post.bytes));
    case vector_kind: return refuse(on_vector(post.bytes));
    default: return refuse(chain::Verdict::Malformed);
  }
}

chain::Verdict TrainingRounds::refuse(chain::Verdict verdict) {
  if (verdict != chain::Verdict::Taken && verdict != chain::Verdict::Known) ++seen_.refused[verdict];
  return verdict;
}

void TrainingRounds::found(const chain::Evidence& evidence) {
  ++seen_.evidence;
  port_->add_evidence(evidence);
}

chain::Verdict TrainingRounds::on_contribution(ByteSpan bytes) {
  auto post = decode_contribution_post(bytes, options_.chain.rows);
  if (!post) return chain::Verdict::Malformed;
  const auto taken = book_.take(post->contribution, *tip_);
  if (taken.evidence) found(*taken.evidence);
  if (taken.verdict != chain::Verdict::Taken && taken.verdict != chain::Verdict::Known) return taken.verdict;
  // Its payloads have a grace from now on.
  if (taken.verdict == chain::Verdict::Taken) moved_at_ = services_.clock.monotonic_now();
  if (const auto* entry = book_.find(crypto::node_id(post->contribution.node), *tip_)) {
    show_to_candidate(*entry);
    for (auto& [row, payload] : post->payloads) book_.take_payload(entry->member, row, std::move(payload));
  }
  look_soon();
  return taken.verdict;
}

chain::Verdict TrainingRounds::on_vector(ByteSpan bytes) {
  auto vector = chain::decode_vector(bytes, tip_->registry->members().size(),
                                     options_.chain.rows_of(book_.round()).size());
  if (!vector.ok()) return chain::Verdict::Malformed;
  const auto taken = vectors_.take(std::move(*vector), *tip_);
  if (taken.evidence) found(*taken.evidence);
  if (taken.verdict == chain::Verdict::Taken) look_soon();
  return taken.verdict;
}

chain::SignedByMember TrainingRounds::signed_by(const net::NodeId& member) const {
  chain::SignedByMember held;
  if (!tip_) return held;
  if (const ContributionBook::Entry* entry = book_.find(member, *tip_))
    held.contribution = chain::entry_of(*entry->contribution, entry->member);
  const chain::MemberRecord* record = tip_->registry->find(member);
  if (record == nullptr) return held;
  const bool kept = member == self_ && kept_vector_ && kept_vector_->opening == book_.opening();
  if (const chain::Vector* vector = kept ? &*kept_vector_ : vectors_.find(record->number))
    held.vector = chain::claim_of(*vector);
  return held;
}

void TrainingRounds::on_call(const net::Caller& from, ByteSpan bytes, const net::Respond& respond) {
  const auto request = decode_piece_request(bytes);
  if (!request.ok()) return respond(request.error());
  if (!tip_) return respond(make_error(ErrorCode::NotFound, "this node has no history yet"));
  const bool of_anchor =
      request->what == PieceRequest::What::Leaves || request->what == PieceRequest::What::Chunk;
  respond(of_anchor ? states_.piece(*request) : exchange_.piece(from.id, *request, *tip_));
}

}  // namespace neuroshard::rounds
