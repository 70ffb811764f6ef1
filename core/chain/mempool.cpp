#include "core/chain/mempool.h"

#include <algorithm>
#include <set>

namespace neuroshard::chain {
namespace {

bool is_presence_change(const Statement& statement) {
  return std::holds_alternative<Away>(statement.what) || std::holds_alternative<Back>(statement.what);
}

// A lower one comes first in a block.
int rank_of(const Statement& statement) {
  if (std::holds_alternative<Revoke>(statement.what)) return 0;
  return is_presence_change(statement) ? 1 : 2;
}
constexpr int last_rank = 2;

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
  if (rank_of(statement) < last_rank) return true;  // members' only, so there are few
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
  if (!admissible(rules_, *tip.registry, tip.block->hash, evidence).ok()) return Verdict::Inadmissible;
  if (!checks_.evidence(evidence, rules_.network)) return Verdict::BadSignature;
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
  std::erase_if(evidence_, [&](const auto& each) {
    return !admissible(rules_, *tip.registry, tip.block->hash, each.second).ok();
  });
}

void Mempool::drop_late(const ChainTip& tip, std::uint64_t time_ms) {
  std::erase_if(statements_, [&](const auto& each) {
    return !admissible_at(rules_, *tip.registry, tip.block->hash, time_ms, each.second).ok();
  });
}

std::vector<Statement> Mempool::applicable_of(std::vector<Statement> statements, const ChainTip& tip) const {
  std::set<crypto::PublicKey> nodes;
  std::erase_if(statements, [&](const Statement& statement) { return !nodes.insert(statement.node).second; });
  BlockBody body;
  body.statements = std::move(statements);
  return applicable(rules_, *tip.registry, tip.block->hash, tip.block->header.time_ms + 1, body).statements;
}

std::vector<Statement> Mempool::statements(const ChainTip& tip) const {
  std::vector<Statement> ordered;
  for (int rank = 0; rank <= last_rank; ++rank)
    for (const auto& [key, statement] : statements_)
      if (rank_of(statement) == rank) ordered.push_back(statement);
  return applicable_of(std::move(ordered), tip);
}

std::vector<Statement> Mempool::presence_changes(const ChainTip& tip) const {
  std::vector<Statement> ordered;
  for (const auto& [key, statement] : statements_)
    if (is_presence_change(statement)) ordered.push_back(statement);
  return applicable_of(std::move(ordered), tip);
}

std::vector<Evidence> Mempool::evidence(const ChainTip& tip) const {
  std::vector<Evidence> chosen;
  std::set<std::uint32_t> wallets;  // one expels all nodes of a wallet
  for (const auto& [key, item] : evidence_) {
    const MemberRecord* member = tip.registry->find(crypto::node_id(key));
    if (!member || !wallets.insert(member->wallet).second) continue;
    chosen.push_back(item);
    if (chosen.size() == max_block_evidence) break;
  }
  return chosen;
}

bool Mempool::changes_voters(const ChainTip& tip) const {
  return std::any_of(statements_.begin(), statements_.end(), [&tip](const auto& each) {
    const Statement& statement = each.second;
    if (rank_of(statement) == last_rank) return false;
    const MemberRecord* member = tip.registry->find(crypto::node_id(statement.node));
    return member != nullptr && tip.registry->is_voter(*member);
  });
}

}  // namespace neuroshard::chain
