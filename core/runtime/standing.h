// A member's standing in words, as views and reports have it.
#pragma once

#include "core/chain/registry.h"

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

}  // namespace neuroshard::runtime
