// A member's standing: in words, as views and reports have it, and as a rank among callers.
#pragma once

#include "core/chain/registry.h"
#include "core/net/peer_ranks.h"

namespace neuroshard::runtime {

// "voter", "candidate" or "away".
inline const char* standing_of(const chain::Registry& registry, const chain::MemberRecord& member) {
  if (member.presence != chain::Presence::Active) return "away";
  return registry.is_voter(member) ? "voter" : "candidate";
}

// Whether people see it among the members: it votes, or its work was certified. Anybody can register keys.
inline bool is_shown(const chain::Registry& registry, const chain::MemberRecord& member) {
  return member.presence == chain::Presence::Active &&
         (registry.is_voter(member) || member.contributions > 0);
}

// Anybody can register keys, so a member has a rank only when it votes, a voter vouched for it or its work was
// certified. Until then it is a stranger like the others.
inline net::PeerRank rank_of(const chain::Registry& registry, const chain::MemberRecord& member) {
  if (registry.is_voter(member)) return net::PeerRank::Voter;
  const chain::WalletRecord* const wallet = registry.wallet(member.wallet);
  const bool vouched = wallet != nullptr && wallet->is_trusted();
  return vouched || member.contributions > 0 ? net::PeerRank::Known : net::PeerRank::Stranger;
}

// The pipeline takes what it sends: that reaches the weights without the limits that the rounds have for candidates.
inline bool is_trusted(const chain::Registry& registry, const chain::MemberRecord& member) {
  return registry.is_voter(member) || registry.wallet(member.wallet)->is_trusted();
}

}  // namespace neuroshard::runtime
