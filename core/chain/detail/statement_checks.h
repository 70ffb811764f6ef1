// Whether the registry takes a statement or an evidence: rights, quotas and bounds, no signature.
// Pure. Errors: Denied says what does not hold.
#pragma once

#include "core/chain/registry.h"

namespace neuroshard::chain {

// The facts by which a block's statements are judged. `before` is the registry of the block before; where
// something in the block has changed the records already, `now` has them.
struct StatementContext {
  const ChainRules& rules;
  const Registry& before;
  const Hash256& before_hash;
  std::uint64_t time_ms = 0;  // the block's
  bool restricted = false;    // before.is_restricted()
};

Expected<void> check_statement(const StatementContext& context, const Registry& now,
                               const Statement& statement);
// The rules that genesis and later registrations have in common.
Expected<void> check_registration(const ChainRules& rules, std::uint64_t round, std::uint64_t time_ms,
                                  const crypto::PublicKey& node, const Register& registration);
Expected<void> check_evidence(const StatementContext& context, const Registry& now, const Evidence& evidence);

// Whether a member makes room for a new one when the registry is full: no vote, no voucher, no contribution.
bool is_evictable(const Registry& registry, const MemberRecord& member);
// The same of a revocation: its wallet never had a vote, or is expelled.
bool is_evictable(const Registry& registry, const RevocationRecord& revocation);
// The same of a wallet: expelled, and it never had a vote.
bool is_forgettable(const WalletRecord& wallet);

}  // namespace neuroshard::chain
