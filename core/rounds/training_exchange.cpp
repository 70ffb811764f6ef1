// TrainingRounds: what comes from other members and goes to them.
#include <algorithm>

#include "core/chain/rights.h"
#include "core/net/peer_channel.h"
#include "core/rounds/detail/rounds_posts.h"
#include "core/rounds/training_rounds.h"

namespace neuroshard::rounds {

std::vector<net::NodeId> TrainingRounds::committee() const {
  std::vector<net::NodeId> ids;
  for (const chain::CommitteeMember& member : tip_->committee->members())
    if (member.id != self_) ids.push_back(member.id);
  return ids;
}

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

chain::Verdict TrainingRounds::on_contribution(ByteSpan bytes) {
  auto post = decode_contribution_post(bytes, options_.chain.rows);
  if (!post) return chain::Verdict::Malformed;
  const auto taken = book_.take(post->contribution, *tip_);
  if (taken.evidence) {
    ++seen_.evidence;
    port_->add_evidence(*taken.evidence);
  }
  if (taken.verdict != chain::Verdict::Taken && taken.verdict != chain::Verdict::Known) return taken.verdict;
  if (const auto* entry = book_.find(crypto::node_id(post->contribution.node)))
    for (auto& [row, payload] : post->payloads) book_.take_payload(entry->member, row, std::move(payload));
  look_soon();
  return taken.verdict;
}

chain::Verdict TrainingRounds::on_vector(ByteSpan bytes) {
  const auto vector = chain::decode_vector(bytes, tip_->registry->members().size(), options_.chain.rows);
  if (!vector.ok()) return chain::Verdict::Malformed;
  const auto taken = vectors_.take(*vector, *tip_);
  if (taken.evidence) {
    ++seen_.evidence;
    port_->add_evidence(*taken.evidence);
  }
  if (taken.verdict == chain::Verdict::Taken) look_soon();
  return taken.verdict;
}

// The contributor first, then the voters that have its contribution.
std::vector<net::NodeId> TrainingRounds::holders(std::uint32_t member) const {
  std::vector<net::NodeId> ids;
  const auto add = [&](std::uint32_t number) {
    const chain::MemberRecord* record = tip_->registry->find(number);
    if (record != nullptr && record->id != self_) ids.push_back(record->id);
  };
  add(member);
  const bool any_vectors = vectors_.count() > 0;
  if (any_vectors) {
    for (const std::uint32_t voter : vectors_.holders(member))
      if (voter != member) add(voter);
  } else if (tip_->registry->closed()) {
    for (const chain::CommitteeMember& voter : tip_->committee->members())
      if (voter.number != member) add(voter.number);
  }
  return ids;
}

void TrainingRounds::ask_for_payloads() {
  // Members give payloads to those whose own contribution they have, until the close.
  if (!own_.has_contributed() && !tip_->registry->closed()) return;
  for (const auto& [member, entry] : book_.all()) {
    for (std::size_t i = 0; i < entry.payloads.size(); ++i) {
      const chain::RowWork& work = entry.contribution.rows[i];
      if (entry.payloads[i] || !asked_payloads_.insert(work.payload).second) continue;
      FetchRequest request;
      request.slot = {RoundSlot::Kind::Model, static_cast<std::uint16_t>(work.row), 0};
      request.what = FetchRequest::What::Payload;
      request.hash = work.payload;
      fetcher_.checked(
          request, work.payload_bytes, holders(member),
          [id = entry.id, root = work.payload](ByteSpan bytes) { return payload_root(id, bytes) == root; },
          [this, life = lifetime_.token(), member = member, work,
           opening = book_.opening()](Expected<Bytes> bytes) {
            if (!life.alive() || opening != book_.opening()) return;
            asked_payloads_.erase(work.payload);  // a failure is asked for again at a later look
            if (bytes.ok()) {
              book_.take_payload(member, work.row, std::move(*bytes));
              look_soon();
            }
          });
    }
  }
}

bool TrainingRounds::is_certified(const ContributionBook::Entry& entry) const {
  const auto& closed = tip_->registry->closed();
  return closed && std::any_of(closed->contributions.begin(), closed->contributions.end(),
                               [&](const chain::ContributionEntry& one) {
                                 return one.member == entry.member &&
                                        chain::contribution_id(one) == entry.contribution_id;
                               });
}

// Before the close those that must be in it; after it those that it names.
void TrainingRounds::ask_for_contributions() {
  if (const auto& closed = tip_->registry->closed()) {
    for (const chain::ContributionEntry& entry : closed->contributions) {
      const ContributionBook::Entry* known = book_.find(entry.member);
      if (known == nullptr || !is_certified(*known)) ask_for_contribution(entry.member);
    }
  } else if (tip_->committee->is_quorum(vectors_.units(*tip_->committee))) {
    for (const std::uint32_t member : vectors_.missing(*tip_->committee, book_)) ask_for_contribution(member);
  }
}

void TrainingRounds::ask_for_contribution(std::uint32_t member) {
  const chain::MemberRecord* record = tip_->registry->find(member);
  if (record == nullptr || asked_contributions_.count(member) != 0) return;
  std::vector<net::NodeId> sources = holders(member);
  if (sources.empty()) return;
  const auto contact = services_.peers.find(sources[questions_++ % sources.size()]);
  if (!contact) return;
  asked_contributions_.insert(member);
  FetchRequest request;
  request.what = FetchRequest::What::Contribution;
  request.hash = record->id;
  request.place = book_.round();
  services_.caller.call(
      *contact, options_.fetch.method, encode_fetch_request(request), options_.fetch.allowed,
      [this, life = lifetime_.token(), member, id = record->id,
       opening = book_.opening()](Expected<Bytes> answer) {
        if (!life.alive() || opening != book_.opening()) return;
        asked_contributions_.erase(member);
        if (!answer.ok()) return;
        const auto piece = decode_fetch_answer(*answer);
        if (!piece.ok()) return;
        const auto contribution = chain::decode_contribution(piece->bytes, options_.chain.rows);
        if (!contribution.ok()) return;
        take_asked(member, id, *contribution);
      });
}

void TrainingRounds::take_asked(std::uint32_t member, const net::NodeId& id,
                                const chain::Contribution& contribution) {
  if (const auto& closed = tip_->registry->closed()) {
    for (const chain::ContributionEntry& entry : closed->contributions)
      if (entry.member == member) book_.take_certified(contribution, entry, id);
  } else if (const auto taken = book_.take(contribution, *tip_); taken.evidence) {
    ++seen_.evidence;
    port_->add_evidence(*taken.evidence);
  }
  look_soon();
}

void TrainingRounds::on_call(const net::Caller& from, ByteSpan request, const net::Respond& respond) {
  respond(piece(from.id, request));
}

Expected<Bytes> TrainingRounds::piece(const net::NodeId& from, ByteSpan bytes) const {
  NS_ASSIGN_OR_RETURN(const FetchRequest request, decode_fetch_request(bytes));
  const Error missing = make_error(ErrorCode::NotFound, "this node does not hold what is asked for");
  if (!tip_) return missing;
  if (request.what == FetchRequest::What::Leaves || request.what == FetchRequest::What::Chunk)
    return states_.piece(request);
  for (const ContributionBook* book : {&book_, previous_ ? &*previous_ : nullptr}) {
    if (book == nullptr) continue;
    if (request.what == FetchRequest::What::Contribution) {
      const ContributionBook::Entry* entry =
          book->round() == request.place ? book->find(request.hash) : nullptr;
      if (entry == nullptr) continue;
      const Bytes whole = chain::encode_contribution(entry->contribution);
      return encode_fetch_answer(whole.size(), whole);
    }
    // Until the close, payloads are for those that can't copy them any more.
    const bool open = book == &book_ && !tip_->registry->closed();
    if (open && book->find(from) == nullptr) continue;
    for (const auto& [member, entry] : book->all()) {
      for (std::size_t i = 0; i < entry.payloads.size(); ++i) {
        if (entry.contribution.rows[i].payload != request.hash || !entry.payloads[i]) continue;
        const ByteSpan whole = *entry.payloads[i];
        if (request.place >= whole.size()) return missing;
        const ByteSpan rest = whole.subspan(static_cast<std::size_t>(request.place));
        return encode_fetch_answer(whole.size(), rest.first(std::min(rest.size(), net::chunk_bytes)));
      }
    }
  }
  return missing;
}

}  // namespace neuroshard::rounds
