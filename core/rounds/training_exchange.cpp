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

void TrainingRounds::on_call(const net::Caller& from, ByteSpan request, const net::Respond& respond) {
  respond(piece(from.id, request));
}

Expected<Bytes> TrainingRounds::piece(const net::NodeId& from, ByteSpan bytes) const {
  NS_ASSIGN_OR_RETURN(const PieceRequest request, decode_piece_request(bytes));
  if (!tip_) return make_error(ErrorCode::NotFound, "this node has no history yet");
  const bool of_anchor =
      request.what == PieceRequest::What::Leaves || request.what == PieceRequest::What::Chunk;
  return of_anchor ? states_.piece(request) : exchange_.piece(from, request, *tip_);
}

}  // namespace neuroshard::rounds
