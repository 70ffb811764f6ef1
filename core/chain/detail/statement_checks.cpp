#include "core/chain/detail/statement_checks.h"

#include <algorithm>

#include "core/chain/beacon.h"
#include "core/chain/detail/errors.h"

namespace neuroshard::chain {
namespace {

constexpr std::uint32_t serial_window = 64;

// Whether somebody else still votes without some nodes. False is final; true is checked again at the block's end.
template <class Gone>
bool others_vote(const Registry& now, const Gone& gone) {
  const std::vector<std::uint32_t>& drawn = now.epoch_committee();
  return std::any_of(now.members().begin(), now.members().end(), [&](const MemberRecord& member) {
    if (member.presence != Presence::Active || !member.can_share() || gone(member)) return false;
    const WalletRecord& wallet = *now.wallet(member.wallet);
    return wallet.voter && wallet.is_trusted() &&
           (drawn.empty() || std::binary_search(drawn.begin(), drawn.end(), member.number));
  });
}

bool is_last_voter(const Registry& now, const MemberRecord& member) {
  return now.is_voter(member) && member.presence == Presence::Active &&
         !others_vote(now, [&member](const MemberRecord& other) { return other.number == member.number; });
}

bool serial_was_used(const WalletRecord& issuer, std::uint32_t serial) {
  if (serial > issuer.highest_serial) return false;
  const std::uint32_t back = issuer.highest_serial - serial;
  return back >= serial_window || (issuer.used_serials >> back & 1u) != 0;
}

Expected<void> check_voucher(const StatementContext& context, const Registry& now, const Voucher& voucher,
                             const WalletRecord* wallet) {
  if (context.rules.voters == VotersMode::Founders)
    return denied("nobody can be vouched for in this network: its founders alone vote");
  if (wallet != nullptr && wallet->is_trusted()) return denied("the wallet needs no voucher");
  const MemberRecord* issuer = now.find(crypto::node_id(voucher.issuer));
  const WalletRecord* owner = issuer != nullptr ? now.wallet(issuer->wallet) : nullptr;
  if (owner == nullptr || !owner->voter || !owner->is_trusted())
    return denied("the voucher is not from a voter that can vouch");
  if (voucher.expires_ms <= context.time_ms) return denied("the voucher has expired");
  if (serial_was_used(*owner, voucher.serial)) return denied("the voucher was used before");
  const std::uint64_t round = context.before.round() + 1;
  const bool pauses = owner->last_voucher_round != 0 && round < owner->last_voucher_round + voucher_pause;
  if (pauses && now.voter_count() >= few_voters)
    return denied("a voucher of the same wallet was used a few rounds ago");
  return {};
}

Expected<void> check(const StatementContext& context, const Registry& now, const Statement& statement,
                     const MemberRecord* member, const Register& what) {
  if (member != nullptr) return denied("the node is a member already");
  NS_RETURN_IF_ERROR(
      check_registration(context.rules, context.before.round() + 1, context.time_ms, statement.node, what));
  const WalletRecord* wallet = now.wallet(what.delegation.wallet_key);
  if (wallet != nullptr && wallet->expelled) return denied("the wallet is expelled");
  if (now.revocation(statement.node, what.delegation.wallet_key) != nullptr)
    return denied("the wallet revoked this node key");
  const auto evictable = [&now](const MemberRecord& other) { return is_evictable(now, other); };
  if (now.members().size() >= max_members &&
      std::none_of(now.members().begin(), now.members().end(), evictable))
    return denied("the registry has no room for a member");
  if (wallet == nullptr && now.wallets().size() >= max_wallets &&
      std::none_of(now.wallets().begin(), now.wallets().end(), is_forgettable))
    return denied("the registry has no room for a wallet");
  if (what.voucher) return check_voucher(context, now, *what.voucher, wallet);
  return {};
}

Expected<void> check(const StatementContext& context, const Registry& now, const Statement& /*statement*/,
                     const MemberRecord* member, const Vouch& what) {
  if (member == nullptr) return denied("the node is not a member");
  const WalletRecord& wallet = *now.wallet(member->wallet);
  if (wallet.key != what.wallet) return denied("the voucher is used for another wallet");
  return check_voucher(context, now, what.voucher, &wallet);
}

// A statement that a block contained once could be shown again: it says nothing about what came after it.
bool knows_presence(const Statement& statement, const MemberRecord& member) {
  return statement.reference.height >= member.presence_height;
}

Expected<void> check(const StatementContext& /*context*/, const Registry& now, const Statement& statement,
                     const MemberRecord* member, const Away&) {
  if (member == nullptr) return denied("the node is not a member");
  if (!knows_presence(statement, *member)) return denied("the member's presence changed since the statement");
  if (member->presence != Presence::Active) return denied("the member is dormant already");
  if (is_last_voter(now, *member)) return denied("the last active voter stays active");
  return {};
}

Expected<void> check(const StatementContext& context, const Registry& /*now*/, const Statement& statement,
                     const MemberRecord* member, const Back&) {
  if (member == nullptr) return denied("the node is not a member");
  const MemberRecord* was = context.before.find(member->number);
  if (was == nullptr || was->presence != Presence::Dormant) return denied("the member is active already");
  if (!knows_presence(statement, *was)) return denied("the member's presence changed since the statement");
  if (context.time_ms - std::min(context.time_ms, was->dormant_ms) > return_right_ms)
    return denied("the member was dormant for too long and has to register anew");
  return {};
}

Expected<void> check_rows(const ChainRules& rules, const RowSet& rows) {
  if (rows.is_all() || (rules.has_holders() && rows.end() <= rules.rows)) return {};
  return denied(rules.has_holders() ? "the node wants to hold a row that the model does not have"
                                    : "in this network each member holds the whole model");
}

Expected<void> check(const StatementContext& context, const Registry& now, const Statement& statement,
                     const MemberRecord* member, const Move& what) {
  if (member == nullptr) return denied("the node is not a member");
  NS_RETURN_IF_ERROR(check_rows(context.rules, what.rows));
  if (!knows_presence(statement, *member)) return denied("the member's presence changed since the statement");
  if (what.rows == member->rows && what.follows_plan == member->follows_plan)
    return denied("the member holds these rows already");
  if (is_last_voter(now, *member)) return denied("the last active voter stays active");
  return {};
}

Expected<void> check(const StatementContext& /*context*/, const Registry& now, const Statement& /*statement*/,
                     const MemberRecord* member, const Leave&) {
  if (member == nullptr) return denied("the node is not a member");
  if (is_last_voter(now, *member)) return denied("the last active voter can't leave");
  return {};
}

Expected<void> check(const StatementContext& context, const Registry& /*now*/, const Statement& /*statement*/,
                     const MemberRecord* member, const Commit& what) {
  if (member == nullptr) return denied("the node is not a member");
  if (member->next_beacon) return denied("the member has a new hash chain already");
  const std::uint64_t round = context.before.round() + 1;
  if (what.beacon.length < 1 || what.beacon.length > beacon_chain_length ||
      what.beacon.first_round < round + 2 || what.beacon.first_round > round + beacon_chain_length)
    return denied("a new hash chain begins two rounds later");
  return {};
}

Expected<void> check(const StatementContext& context, const Registry& /*now*/, const Statement& /*statement*/,
                     const MemberRecord* member, const Offer& what) {
  if (member == nullptr) return denied("the node is not a member");
  if (what.memory_tiers > most_memory_tiers) return denied("the member offers more memory than nodes have");
  if (what.memory_tiers == member->memory_tiers && what.speed == member->speed)
    return denied("the member offers this already");
  if (member->offered_height != 0 &&
      context.before.height() + 1 < member->offered_height + offer_pause_blocks)
    return denied("the member's offer changed a few blocks ago");
  return {};
}

Expected<void> check(const StatementContext& /*context*/, const Registry& now, const Statement& statement,
                     const MemberRecord* member, const Revoke& what) {
  if (now.revocation(statement.node, what.wallet) != nullptr)
    return denied("the wallet has revoked this node key already");
  if (member == nullptr) return denied("the node is not a member");
  if (now.wallet(member->wallet)->key != what.wallet) return denied("the node works for another wallet");
  if (is_last_voter(now, *member)) return denied("the last active voter can't be revoked");
  const std::vector<RevocationRecord>& all = now.revocations();
  const auto of_wallet = std::count_if(all.begin(), all.end(), [&what](const RevocationRecord& revocation) {
    return revocation.wallet == what.wallet;
  });
  if (static_cast<std::size_t>(of_wallet) >= max_wallet_revocations)
    return denied("the wallet has revoked as many nodes as it can: move to a new wallet");
  const auto evictable = [&now](const RevocationRecord& other) { return is_evictable(now, other); };
  if (all.size() >= max_revocations && std::none_of(all.begin(), all.end(), evictable))
    return denied("the registry has no room for a revocation");
  return {};
}

}  // namespace

bool is_evictable(const Registry& registry, const MemberRecord& member) {
  const WalletRecord& wallet = *registry.wallet(member.wallet);
  return member.contributions == 0 && !wallet.voter && !wallet.is_trusted();
}

bool is_evictable(const Registry& registry, const RevocationRecord& revocation) {
  const WalletRecord* wallet = registry.wallet(revocation.wallet);
  return wallet == nullptr || wallet->expelled || (!wallet->is_trusted() && wallet->admitted_height == 0);
}

bool is_forgettable(const WalletRecord& wallet) {
  return wallet.expelled && !wallet.is_trusted() && wallet.admitted_height == 0;
}

Expected<void> check_registration(const ChainRules& rules, std::uint64_t round, std::uint64_t time_ms,
                                  const crypto::PublicKey& node, const Register& registration) {
  const crypto::Delegation& delegation = registration.delegation;
  if (delegation.node_key != node || delegation.network_id != rules.network)
    return denied("the delegation is for another node or network");
  const std::int64_t expires = to_unix_ms(delegation.expires);
  if (expires < 0 || static_cast<std::uint64_t>(expires) <= time_ms)
    return denied("the delegation has expired");
  NS_RETURN_IF_ERROR(check_rows(rules, registration.rows));
  // A chain from long ago would have others hash a long way for the first reveal.
  const BeaconCommitment& beacon = registration.beacon;
  if (beacon.length < 1 || beacon.length > beacon_chain_length ||
      beacon.first_round > round + beacon_chain_length || beacon.first_round + statement_life < round ||
      beacon.first_round + beacon.length <= round)
    return denied("the hash chain is not for the coming rounds");
  return {};
}

Expected<void> check_statement(const StatementContext& context, const Registry& now,
                               const Statement& statement) {
  // A revocation is its wallet's own decision, so the absent voters need no protection from it.
  const bool always = std::holds_alternative<Away>(statement.what) ||
                      std::holds_alternative<Back>(statement.what) ||
                      std::holds_alternative<Revoke>(statement.what);
  if (context.restricted && !always)
    return denied(
        "less than half of the voters are active: only presence changes and revocations until more are back");
  if (!context.before.is_recent(statement.reference, context.before_hash))
    return denied("the statement names no recent block of this history");
  const MemberRecord* member = now.find(crypto::node_id(statement.node));
  return std::visit([&](const auto& what) { return check(context, now, statement, member, what); },
                    statement.what);
}

namespace {

Expected<void> check_false_result(const Registry& now, const MemberRecord& member, const FalseResult& what) {
  const AttestedRow& attested = what.attested;
  const bool held =
      member.rows.has(attested.result.row) || member.moved_height != 0;  // perhaps it gave up the row since
  if (attested.voter != member.number || !held)
    return denied("the false result is not of a row of this member");
  const OpenRow* row = now.open_row(attested.result.row, attested.round);
  if (row == nullptr || row->contributors == Hash256{})
    return denied("the row is settled, or its round has no contributions");
  const Hash256 result = result_hash(attested.result);
  const bool known = std::any_of(now.strikes().begin(), now.strikes().end(), [&](const StrikeRecord& strike) {
    return strike.wallet == member.wallet && strike.round == attested.round && strike.result == result;
  });
  return known ? denied("the false result is known") : Expected<void>();
}

}  // namespace

Expected<void> check_evidence(const StatementContext& context, const Registry& now,
                              const Evidence& evidence) {
  if (context.restricted)
    return denied("less than half of the voters are active: nobody is expelled until more are back");
  const MemberRecord* member = now.find(crypto::node_id(evidence.node));
  if (member == nullptr) return denied("the evidence is against no member");
  if (!context.before.is_ancestor(anchor_block(evidence), context.before_hash))
    return denied("the evidence is not of this history, or too old");
  if (const auto* result = std::get_if<FalseResult>(&evidence.what))
    NS_RETURN_IF_ERROR(check_false_result(now, *member, *result));
  const bool voter = now.is_voter(*member);
  if (voter &&
      !others_vote(now, [member](const MemberRecord& other) { return other.wallet == member->wallet; }))
    return denied("nobody would vote without the wallet");
  return {};
}

}  // namespace neuroshard::chain
