// RoundParticipant: proofs that a member has sent two payloads. Who has one hears the liar no more, and tells
// it: a liar sends the other payload to few, so hardly anybody hears both from itself.
#include <algorithm>

#include "core/rounds/detail/outbox_keys.h"
#include "core/rounds/participant.h"

namespace neuroshard::rounds {
namespace {

constexpr std::size_t most_told_again = 16;  // proofs of one round

}  // namespace

Verdict RoundParticipant::on_evidence(const net::NodeId& from, const EvidencePost& evidence) {
  const Verdict here = at_round(evidence.first.round, from);
  if (here != Verdict::Taken && here != Verdict::PastRound) return here;
  const net::NodeId liar = crypto::node_id(evidence.first.key);
  // In this round what it sent is out, besides.
  if (here == Verdict::Taken && member_index(group(), liar) < group().size()) {
    const Verdict taken = contributions_->take_evidence(evidence);
    if (taken == Verdict::Taken) take_proof(evidence, from);
    return taken;
  }
  // Of a round that is over it changes nothing there, nor of another sub-group; against its sender it is as
  // good as ever.
  if (!is_in(liar)) return Verdict::NotMember;
  if (proven_.count(liar) != 0) return Verdict::Known;
  if (!proves(evidence)) return Verdict::BadSignature;
  take_proof(evidence, from);
  return Verdict::Taken;
}

bool RoundParticipant::proves(const EvidencePost& e) const {
  return e.first.key == e.second.key && e.first.slot == e.second.slot && e.first.round == e.second.round &&
         e.first.slot == common_.rules.slot && !(e.first == e.second) &&
         contribution_holds(e.first, network_) && contribution_holds(e.second, network_);
}

void RoundParticipant::take_proof(const EvidencePost& evidence, const net::NodeId& from) {
  const net::NodeId liar = crypto::node_id(evidence.first.key);
  if (liar == self_ || !proven_.insert(liar).second) return;
  ++counters_.evidence;
  services_.peers.proven_liar(liar);
  if (!is_member()) return;
  tell_proof(evidence, from);
  // Not from within: an agreement may be what asks.
  static_cast<void>(services_.executor.post(guarded([this] { liar_found(); })));
  // The round may end before all have it, and where it was told to all sub-groups nobody needs it twice.
  const bool of_this_group = member_index(group(), liar) < group().size();
  if ((of_this_group || evidence.first.round != round_) && new_proofs_.size() < most_told_again)
    new_proofs_.push_back(evidence);
}

std::uint32_t RoundParticipant::key_of_proof(const EvidencePost& evidence) const {
  const std::size_t liar = roster_index(*chain_->roster(), crypto::node_id(evidence.first.key));
  return proof_key + static_cast<std::uint32_t>(liar);
}

// Who finds out tells the others of its group.
void RoundParticipant::tell_proof(const EvidencePost& evidence, const net::NodeId& from) {
  if (from == self_) send(key_of_proof(evidence), evidence, others());
}

// After a certificate: in one group to those who had not had all of the round before, in sub-groups to those
// of this round, so that what was lost on the way to other sub-groups gets there.
void RoundParticipant::tell_proofs_again() {
  const std::vector<EvidencePost> proofs = std::exchange(new_proofs_, {});
  if (proofs.empty() || !is_member()) return;
  std::vector<net::NodeId> to = others();
  if (!is_grouped())
    std::erase_if(to, [this](const net::NodeId& id) {
      return std::find(untold_.begin(), untold_.end(), id) == untold_.end();
    });
  for (const EvidencePost& evidence : proofs)
    if (proven_.count(crypto::node_id(evidence.first.key)) != 0) send(key_of_proof(evidence), evidence, to);
}

}  // namespace neuroshard::rounds
