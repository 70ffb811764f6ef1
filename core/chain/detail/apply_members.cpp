// Statements, presence, evidence and successions of BlockApplication.
#include <algorithm>

#include "core/base/check.h"
#include "core/chain/ascending.h"
#include "core/chain/detail/block_application.h"
#include "core/chain/detail/errors.h"
#include "core/chain/detail/open_row_changes.h"

namespace neuroshard::chain {
namespace {

template <class Record>
Record& at_number(std::vector<Record>& records, std::uint32_t number) {
  Record* record = find_by(records, &Record::number, number);
  NS_CHECK(record != nullptr);
  return *record;
}

bool is_expired(const MemberRecord& member, std::uint64_t time_ms) {
  return member.presence == Presence::Dormant && time_ms > member.dormant_ms &&
         time_ms - member.dormant_ms > return_right_ms;
}

void change(MemberRecord& member, const Commit& what, std::uint64_t /*height*/) {
  member.next_beacon = what.beacon;
}
void change(MemberRecord& member, const Offer& what, std::uint64_t height) {
  member.memory_tiers = what.memory_tiers;
  member.speed = what.speed;
  member.offered_height = height;
}

}  // namespace

MemberRecord& BlockApplication::member(const MemberRecord& record) {
  return at_number(draft_->members_, record.number);
}

WalletRecord& BlockApplication::wallet(std::uint32_t number) {
  return at_number(draft_->wallets_, number);
}

KeyIndex& BlockApplication::index(std::shared_ptr<const KeyIndex>& shared) {
  std::shared_ptr<KeyIndex>& own = &shared == &draft_->by_id_ ? ids_ : wallet_keys_;
  if (!own) {
    own = shared ? std::make_shared<KeyIndex>(*shared) : std::make_shared<KeyIndex>();
    shared = own;
  }
  return *own;
}

template <class Ends>
void BlockApplication::end_memberships(const Ends& ends) {
  if (std::erase_if(draft_->members_, ends) > 0) members_left_ = true;
}

void BlockApplication::end_expired(std::uint64_t time_ms) {
  end_memberships([time_ms](const MemberRecord& record) { return is_expired(record, time_ms); });
}

// A wallet without nodes has no vote and begins anew; what nobody needs of it is forgotten.
void BlockApplication::settle_wallets() {
  if (!members_left_) return;
  std::vector<std::uint32_t> with_nodes;
  for (const MemberRecord& record : draft_->members_) with_nodes.push_back(record.wallet);
  std::sort(with_nodes.begin(), with_nodes.end());
  for (WalletRecord& record : draft_->wallets_) {
    if (std::binary_search(with_nodes.begin(), with_nodes.end(), record.number)) continue;
    record.voter = false;
    record.qualifying = 0;
    record.counted_tokens = 0;
  }
  std::erase_if(draft_->wallets_, [&with_nodes](const WalletRecord& record) {
    return !record.is_trusted() && !record.expelled && record.admitted_height == 0 &&
           !std::binary_search(with_nodes.begin(), with_nodes.end(), record.number);
  });
}

Expected<void> BlockApplication::apply_evidence(const Evidence& evidence) {
  NS_RETURN_IF_ERROR(
      check_evidence({rules_, before_, before_hash_, time_ms_, restricted_}, *draft_, evidence));
  std::vector<std::uint32_t> wallets = {draft_->find(crypto::node_id(evidence.node))->wallet};
  if (const auto* result = std::get_if<FalseResult>(&evidence.what)) {
    OpenRowChanges changes(rules_, *draft_);
    changes.take_back_wrong(result->attested.result, result->attested.round);
    wallets = changes.strike(wallets.front(), result->attested);
  }
  for (const std::uint32_t number : wallets) {
    WalletRecord& expelled = wallet(number);
    expelled.expelled = true;
    expelled.voter = false;
    end_memberships([number](const MemberRecord& record) { return record.wallet == number; });
  }
  return {};
}

Expected<void> BlockApplication::apply_silent(const std::vector<std::uint32_t>& silent) {
  if (!is_ascending(silent, std::identity())) return denied("the silent voters are not ascending");
  for (const std::uint32_t number : silent) {
    const MemberRecord* record = draft_->find(number);
    if (record == nullptr || record->presence != Presence::Active || !draft_->is_voter(*record))
      return denied("only active voters can be silent");
  }
  for (const std::uint32_t number : silent) set_presence(member(*draft_->find(number)), Presence::Dormant);
  return {};
}

void BlockApplication::set_presence(MemberRecord& record, Presence presence) {
  record.presence = presence;
  record.presence_height = height_;
  record.dormant_ms = presence == Presence::Dormant ? time_ms_ : 0;
}

Expected<void> BlockApplication::apply_statement(const Statement& statement) {
  NS_RETURN_IF_ERROR(
      check_statement({rules_, before_, before_hash_, time_ms_, restricted_}, *draft_, statement));
  std::visit([&](const auto& what) { apply(statement, what); }, statement.what);
  return {};
}

void BlockApplication::apply(const Statement& statement, const Register& what) {
  // First, because the voucher may be for the wallet of the only member that can go.
  if (draft_->members_.size() >= max_members) {
    const auto last = std::find_if(draft_->members_.begin(), draft_->members_.end(),
                                   [this](const MemberRecord& r) { return is_evictable(*draft_, r); });
    NS_CHECK(last != draft_->members_.end());
    draft_->members_.erase(last);
    members_left_ = true;
  }
  WalletRecord& owner = wallet_of(what.delegation.wallet_key);
  if (owner.founder) owner.voter = true;
  const std::uint32_t number = owner.number;
  if (what.voucher) use_voucher_of(*what.voucher, owner);
  add_member(statement.node, number, what);
}

void BlockApplication::apply(const Statement& statement, const Vouch& what) {
  use_voucher_of(what.voucher, wallet(draft_->find(crypto::node_id(statement.node))->wallet));
}

void BlockApplication::apply(const Statement& statement, const Away&) {
  set_presence(member(*draft_->find(crypto::node_id(statement.node))), Presence::Dormant);
}

void BlockApplication::apply(const Statement& statement, const Back&) {
  set_presence(member(*draft_->find(crypto::node_id(statement.node))), Presence::Active);
}

void BlockApplication::apply(const Statement& statement, const Move& what) {
  MemberRecord& moving = member(*draft_->find(crypto::node_id(statement.node)));
  moving.rows = what.rows;
  moving.follows_plan = what.follows_plan;
  moving.moved_height = height_;
  set_presence(moving, Presence::Dormant);
}

void BlockApplication::apply(const Statement& statement, const Leave&) {
  const std::uint32_t number = draft_->find(crypto::node_id(statement.node))->number;
  end_memberships([number](const MemberRecord& record) { return record.number == number; });
}

template <class Plain>
void BlockApplication::apply(const Statement& statement, const Plain& what) {
  change(member(*draft_->find(crypto::node_id(statement.node))), what, height_);
}

void BlockApplication::apply(const Statement& statement, const Revoke& what) {
  apply(statement, Leave{});
  std::vector<RevocationRecord>& all = draft_->revocations_;
  if (all.size() >= max_revocations) {
    auto oldest = all.end();
    for (auto at = all.begin(); at != all.end(); ++at)
      if (is_evictable(*draft_, *at) && (oldest == all.end() || at->height < oldest->height)) oldest = at;
    NS_CHECK(oldest != all.end());
    all.erase(oldest);
  }
  const RevocationRecord record{statement.node, what.wallet, height_};
  const auto after = [](const RevocationRecord& a, const RevocationRecord& b) {
    return a.place() < b.place();
  };
  all.insert(std::upper_bound(all.begin(), all.end(), record, after), record);
}

void BlockApplication::use_voucher_of(const Voucher& voucher, WalletRecord& vouched) {
  vouched.vouched = true;
  WalletRecord& issuer = wallet(draft_->find(crypto::node_id(voucher.issuer))->wallet);
  issuer.last_voucher_round = before_.round_ + 1;
  if (voucher.serial > issuer.highest_serial) {
    const std::uint32_t step = voucher.serial - issuer.highest_serial;
    issuer.used_serials = step < 64 ? issuer.used_serials << step : 0;
    issuer.highest_serial = voucher.serial;
  }
  issuer.used_serials |= std::uint64_t{1} << (issuer.highest_serial - voucher.serial);
}

WalletRecord& BlockApplication::wallet_of(const crypto::PublicKey& key) {
  if (const WalletRecord* known = draft_->wallet(key)) return wallet(known->number);
  if (draft_->wallets_.size() >= max_wallets) {
    const auto last = std::find_if(draft_->wallets_.begin(), draft_->wallets_.end(), is_forgettable);
    NS_CHECK(last != draft_->wallets_.end());
    draft_->wallets_.erase(last);
  }
  WalletRecord record;
  record.number = draft_->next_wallet_++;
  record.key = key;
  index(draft_->by_wallet_key_).put(key, record.number);
  draft_->wallets_.push_back(record);
  return draft_->wallets_.back();
}

void BlockApplication::add_member(const crypto::PublicKey& key, std::uint32_t wallet,
                                  const Register& registration) {
  MemberRecord record;
  record.number = draft_->next_member_++;
  record.wallet = wallet;
  record.key = key;
  record.id = crypto::node_id(key);
  record.presence_height = height_;
  record.registered_height = height_;
  record.beacon = registration.beacon;
  record.rows = registration.rows;
  record.follows_plan = registration.follows_plan;
  index(draft_->by_id_).put(record.id, record.number);
  draft_->members_.push_back(record);
}

Expected<void> BlockApplication::apply_succession(const SuccessionSection& succession) {
  const std::vector<std::uint32_t>& continuing = succession.continuing;
  if (continuing.empty() || continuing.size() > max_committee)
    return denied("a succession names the voters that continue");
  if (!is_ascending(continuing, std::identity())) return denied("a succession's voters are not ascending");
  for (const std::uint32_t number : continuing) {
    const MemberRecord* record = draft_->find(number);
    if (record == nullptr || !draft_->is_voter(*record))
      return denied("a succession names a node that is no voter's, or was dormant for too long");
  }
  for (MemberRecord& record : draft_->members_) {
    if (!draft_->is_voter(record)) continue;
    const bool continues = std::binary_search(continuing.begin(), continuing.end(), record.number);
    if (continues != (record.presence == Presence::Active))
      set_presence(record, continues ? Presence::Active : Presence::Dormant);
  }
  draft_->epoch_committee_.clear();
  return {};
}

}  // namespace neuroshard::chain
