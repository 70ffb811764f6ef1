#include "core/chain/mempool.h"

#include <algorithm>
#include <set>

#include "core/chain/messages.h"

namespace neuroshard::chain {
namespace {

bool is_presence_change(const Statement& statement) {
  return std::holds_alternative<Away>(statement.what) || std::holds_alternative<Back>(statement.what);
}

const Voucher* voucher_in(const Statement& statement) {
  if (const auto* what = std::get_if<Register>(&statement.what))
    return what->voucher ? &*what->voucher : nullptr;
  const auto* what = std::get_if<Vouch>(&statement.what);
  return what ? &what->voucher : nullptr;
}

// What one block can take of statements that could each be in it alone.
class Selection {
 public:
  Selection(const Registry& registry, const std::map<crypto::PublicKey, Evidence>& evidence)
      : registry_(registry) {
    for (const MemberRecord& member : registry.members())
      if (member.presence == Presence::Active && registry.is_voter(member)) ++active_;
    for (const auto& [key, item] : evidence)
      if (const MemberRecord* member = registry.find(crypto::node_id(key))) expelled_.insert(member->wallet);
  }

  void add(const Statement& statement) {
    if (chosen_.size() == max_block_statements || nodes_.count(statement.node) > 0) return;
    const MemberRecord* member = registry_.find(crypto::node_id(statement.node));
    if (member && expelled_.count(member->wallet) > 0) return;
    if (!leaves_a_voter(statement, member) || !voucher_is_free(statement)) return;
    nodes_.insert(statement.node);
    chosen_.push_back(statement);
  }
  std::vector<Statement> chosen() && { return std::move(chosen_); }

 private:
  bool leaves_a_voter(const Statement& statement, const MemberRecord* member) {
    if (!std::holds_alternative<Away>(statement.what) && !std::holds_alternative<Leave>(statement.what))
      return true;
    if (!member || member->presence != Presence::Active || !registry_.is_voter(*member)) return true;
    if (active_ <= 1) return false;
    --active_;
    return true;
  }
  bool voucher_is_free(const Statement& statement) {
    const Voucher* voucher = voucher_in(statement);
    if (!voucher) return true;
    const MemberRecord* issuer = registry_.find(crypto::node_id(voucher->issuer));
    return !issuer || issuers_.insert(issuer->wallet).second;
  }

  const Registry& registry_;
  std::size_t active_ = 0;             // nodes of voters
  std::set<std::uint32_t> expelled_;   // wallets, by the evidence of the same block
  std::set<std::uint32_t> issuers_;    // wallets whose voucher is used
  std::set<crypto::PublicKey> nodes_;  // that have a statement in it
  std::vector<Statement> chosen_;
};

// Whether a block with this evidence alone would be valid: the registry's rules, without a second copy of them.
bool could_be_in_block(const ChainRules& rules, SignatureChecks& checks, const Evidence& evidence,
                       const ChainTip& tip) {
  BlockBody body;
  body.evidence.push_back(evidence);
  return apply_body(rules, *tip.registry, tip.block->hash, tip.block->header.time_ms + 1, body, checks).ok();
}

bool contains(const std::vector<Statement>& statements, const Statement& statement) {
  return std::find(statements.begin(), statements.end(), statement) != statements.end();
}

}  // namespace

Verdict Mempool::check_reference(const Statement& statement, const ChainTip& tip) const {
  if (tip.registry->is_recent(statement.reference, tip.block->hash)) return Verdict::Taken;
  if (statement.reference.height > tip.height()) return Verdict::Later;
  return statement.reference.height + statement_life <= tip.height() ? Verdict::Past : Verdict::OtherHistory;
}

bool Mempool::has_room(const Statement& statement) const {
  if (is_presence_change(statement)) return true;  // members' only, so there are few
  if (statements_.size() >= most_waiting_statements) return false;
  if (!std::holds_alternative<Register>(statement.what)) return true;
  const auto registrations = std::count_if(statements_.begin(), statements_.end(), [](const auto& each) {
    return std::holds_alternative<Register>(each.second.what);
  });
  return static_cast<std::size_t>(registrations) < most_waiting_registrations;
}

Verdict Mempool::take(const Statement& statement, const ChainTip& tip) {
  const Key key{statement.node, statement.what.index()};
  const auto waiting = statements_.find(key);
  if (waiting != statements_.end()) {
    const std::uint64_t have = waiting->second.reference.height;
    if (waiting->second == statement || have > statement.reference.height) return Verdict::Known;
    if (have == statement.reference.height) return Verdict::Limit;
  }
  const Verdict reference = check_reference(statement, tip);
  if (reference != Verdict::Taken) return reference;
  if (contains(tip.block->body.statements, statement)) return Verdict::Known;
  if (!admissible(rules_, *tip.registry, tip.block->hash, statement).ok()) return Verdict::Inadmissible;
  if (waiting == statements_.end() && !has_room(statement)) return Verdict::Limit;
  if (!checks_.statement(statement, rules_.network)) return Verdict::BadSignature;
  statements_.insert_or_assign(key, statement);
  return Verdict::Taken;
}

Verdict Mempool::take(const Evidence& evidence, const ChainTip& tip) {
  if (evidence_.count(evidence.node) > 0) return Verdict::Known;
  const MemberRecord* member = tip.registry->find(crypto::node_id(evidence.node));
  if (!member) return Verdict::NotMember;
  const WalletRecord* wallet = tip.registry->wallet(member->wallet);
  if (!wallet || wallet->expelled) return Verdict::Known;
  if (evidence_.size() >= most_waiting_evidence) return Verdict::Limit;
  if (!checks_.evidence(evidence, rules_.network)) return Verdict::BadSignature;
  if (!could_be_in_block(rules_, checks_, evidence, tip)) return Verdict::Inadmissible;
  evidence_.emplace(evidence.node, evidence);
  return Verdict::Taken;
}

void Mempool::on_tip(const ChainTip& tip) {
  std::erase_if(statements_, [&](const auto& each) {
    const Statement& statement = each.second;
    return check_reference(statement, tip) != Verdict::Taken ||
           contains(tip.block->body.statements, statement) ||
           !admissible(rules_, *tip.registry, tip.block->hash, statement).ok();
  });
  std::erase_if(evidence_,
                [&](const auto& each) { return !could_be_in_block(rules_, checks_, each.second, tip); });
}

std::vector<Statement> Mempool::statements(const ChainTip& tip) const {
  Selection selection(*tip.registry, evidence_);
  for (const auto& [key, statement] : statements_)
    if (is_presence_change(statement)) selection.add(statement);
  for (const auto& [key, statement] : statements_)
    if (!is_presence_change(statement)) selection.add(statement);
  return std::move(selection).chosen();
}

std::vector<Statement> Mempool::presence_changes(const ChainTip& tip) const {
  Selection selection(*tip.registry, {});
  for (const auto& [key, statement] : statements_)
    if (is_presence_change(statement)) selection.add(statement);
  return std::move(selection).chosen();
}

std::vector<Evidence> Mempool::evidence(const ChainTip& tip) const {
  std::vector<Evidence> chosen;
  std::set<std::uint32_t> wallets;  // one expels all nodes of a wallet
  for (const auto& [key, item] : evidence_) {
    const MemberRecord* member = tip.registry->find(crypto::node_id(key));
    if (!member || !wallets.insert(member->wallet).second) continue;
    chosen.push_back(item);
    if (chosen.size() == most_block_evidence) break;
  }
  return chosen;
}

bool Mempool::changes_presence() const {
  return std::any_of(statements_.begin(), statements_.end(),
                     [](const auto& each) { return is_presence_change(each.second); });
}

std::vector<Bytes> Mempool::encoded() const {
  std::vector<Bytes> posts;
  for (const auto& [key, statement] : statements_) posts.push_back(encode_item(StatementPost{statement}));
  for (const auto& [key, evidence] : evidence_) posts.push_back(encode_item(EvidencePost{evidence}));
  return posts;
}

}  // namespace neuroshard::chain
