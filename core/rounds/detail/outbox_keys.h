// Keys of a round node's outbox: one item of each kind is on its way at a time.
#pragma once

#include "core/rounds/messages.h"

namespace neuroshard::rounds {

inline constexpr std::uint32_t proposal_key = 1, prepare_key = 2, commit_key = 3, new_view_key = 4,
                               change_key = 5, evidence_key = 6, contribution_key = 7, certificate_key = 8;
// Evidence against several may be on its way: + the liar's index in the roster.
inline constexpr std::uint32_t proof_key = 1u << 16, proof_to_others_key = 1u << 17;

inline std::uint32_t key_of(const RoundItem& item) {
  if (const auto* vote = std::get_if<VotePost>(&item))
    return vote->vote.step == VoteStep::Prepare ? prepare_key : commit_key;
  if (std::holds_alternative<ProposalPost>(item)) return proposal_key;
  if (std::holds_alternative<NewViewPost>(item)) return new_view_key;
  if (std::holds_alternative<EvidencePost>(item)) return evidence_key;
  if (std::holds_alternative<ChangePost>(item)) return change_key;
  if (std::holds_alternative<CertificatePost>(item)) return certificate_key;
  return contribution_key;
}

}  // namespace neuroshard::rounds
