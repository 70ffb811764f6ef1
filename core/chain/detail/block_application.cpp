#include "core/chain/detail/block_application.h"

#include <algorithm>
#include <utility>

#include "core/chain/ascending.h"
#include "core/chain/detail/formats.h"
#include "core/chain/detail/shares.h"

namespace neuroshard::chain {
BlockApplication::BlockApplication(const ChainRules& rules, const Registry& before,
                                   const Hash256& before_hash, std::uint64_t height, std::uint64_t time_ms,
                                   SignatureChecks* checks)
    : rules_(rules),
      before_(before),
      before_hash_(before_hash),
      opening_(before.opening(before_hash)),
      height_(height),
      time_ms_(time_ms),
      restricted_(before.is_restricted()),
      checks_(checks),
      draft_(std::make_shared<Registry>(before)) {}

Expected<void> BlockApplication::check_structure(const BlockBody& body) const {
  if (body.genesis) return denied("only the first block is a genesis");
  if (body.empty()) return denied("the block is empty");
  if (time_ms_ <= before_.time_ms()) return denied("the block's time is not after the one before");
  if (body.succession) {
    const bool alone = !body.close && !body.result && body.silent.empty() && body.statements.empty() &&
                       body.evidence.empty();
    return alone ? Expected<void>() : denied("a succession block has something else in it");
  }
  if (body.close && body.result) return denied("a block closes a round or has a result, not both");
  if (body.statements.size() > max_block_statements) return denied("the block has too many statements");
  if (body.evidence.size() > max_block_evidence) return denied("the block has too much evidence");
  std::vector<crypto::PublicKey> nodes;
  for (const Statement& statement : body.statements) nodes.push_back(statement.node);
  std::sort(nodes.begin(), nodes.end());
  if (std::adjacent_find(nodes.begin(), nodes.end()) != nodes.end())
    return denied("the block has two statements of one node");
  if (!is_ascending(body.evidence, &Evidence::node))
    return denied("the block's evidence is not ascending by node");
  return {};
}

Expected<RegistryPtr> BlockApplication::apply(const BlockBody& body) {
  NS_RETURN_IF_ERROR(check_structure(body));
  if (body.close) {
    committee_ = make_committee(rules_, before_);
    NS_RETURN_IF_ERROR(check_close(*body.close));
    apply_close(*body.close);
  }
  if (body.result) {
    NS_RETURN_IF_ERROR(check_result(*body.result));
    apply_result(*body.result);
  }
  // A succession goes on where the chain stopped, however long ago that was.
  end_expired(body.succession ? before_.time_ms() : time_ms_);
  settle_wallets();
  if (body.succession) NS_RETURN_IF_ERROR(apply_succession(*body.succession));
  for (const Evidence& evidence : body.evidence) NS_RETURN_IF_ERROR(apply_evidence(evidence));
  NS_RETURN_IF_ERROR(apply_silent(body.silent));
  for (const Statement& statement : body.statements) NS_RETURN_IF_ERROR(apply_statement(statement));
  settle_wallets();
  update_epoch(body.result.has_value());
  NS_RETURN_IF_ERROR(check_end(body));
  NS_RETURN_IF_ERROR(check_signatures(body));
  if (body.close) NS_RETURN_IF_ERROR(check_reveals(*body.close));
  return finish();
}

BlockBody BlockApplication::applicable(const BlockBody& body) {
  BlockBody kept = body;
  kept.evidence.clear();
  kept.statements.clear();
  if (body.succession || body.genesis) return kept;
  end_expired(time_ms_);
  settle_wallets();
  for (const Evidence& evidence : body.evidence) {
    if (kept.evidence.size() < max_block_evidence && apply_evidence(evidence).ok())
      kept.evidence.push_back(evidence);
  }
  if (!apply_silent(body.silent).ok()) return kept;
  std::vector<crypto::PublicKey> nodes;
  for (const Statement& statement : body.statements) {
    if (kept.statements.size() == max_block_statements) break;
    if (std::find(nodes.begin(), nodes.end(), statement.node) != nodes.end()) continue;
    if (!apply_statement(statement).ok()) continue;
    nodes.push_back(statement.node);
    kept.statements.push_back(statement);
  }
  return kept;
}

Expected<void> BlockApplication::check_end(const BlockBody& body) const {
  const std::vector<Share> shares = voting_shares(*draft_);
  if (shares.empty()) return denied("nobody would vote after the block");
  if (!body.succession) return {};
  const std::vector<std::uint32_t>& continuing = body.succession->continuing;
  const bool same =
      std::equal(shares.begin(), shares.end(), continuing.begin(), continuing.end(),
                 [](const Share& share, std::uint32_t number) { return share.member == number; });
  return same ? Expected<void>() : denied("a succession names a node that would have no units");
}

Expected<void> BlockApplication::check_signatures(const BlockBody& body) const {
  for (const Statement& statement : body.statements) {
    if (!checks_->statement(statement, rules_.network))
      return denied("a signature of a member's statement does not hold");
  }
  for (const Evidence& evidence : body.evidence) {
    if (!checks_->evidence(evidence, rules_.network)) return denied("a signature of evidence does not hold");
  }
  return body.close ? check_close_signatures(*body.close) : Expected<void>();
}

RegistryPtr BlockApplication::finish() {
  Registry& draft = *draft_;
  if (before_.opening_height_ == before_.height_ && draft.opening_height_ == before_.opening_height_)
    draft.opening_hash_ = before_hash_;
  draft.height_ = height_;
  draft.time_ms_ = time_ms_;
  draft.recent_.insert(draft.recent_.begin(), before_hash_);
  if (draft.recent_.size() >= evidence_blocks) draft.recent_.pop_back();
  if (members_left_) draft.rebuild_indexes();
  draft.complete();
  return std::move(draft_);
}

Expected<RegistryPtr> BlockApplication::apply_genesis(const BlockBody& body) {
  const bool alone = body.genesis && !body.succession && !body.close && !body.result && body.silent.empty() &&
                     body.statements.empty() && body.evidence.empty();
  if (!alone) return denied("the first block is a genesis and nothing else");
  const std::vector<Statement>& founders = body.genesis->founders;
  if (founders.empty() || founders.size() > max_members) return denied("a genesis names its founders");
  if (body.genesis->anchors.size() != rules_.rows || rules_.rows > max_rows)
    return denied("a genesis has an anchor for each row of the model");
  if (!is_ascending(founders, &Statement::node)) return denied("the founders are not ascending");
  for (const Statement& founder : founders) {
    const auto* registration = std::get_if<Register>(&founder.what);
    if (registration == nullptr || registration->voucher || founder.reference != BlockReference{})
      return denied("a founder is not a plain registration without a reference");
    NS_RETURN_IF_ERROR(check_registration(rules_, 1, time_ms_, founder.node, *registration));
    if (!rules_.may_found(registration->delegation.wallet_key))
      return denied("a founder's wallet is not one of the founders that the network's profile names");
  }
  for (const Statement& founder : founders) {
    if (!checks_->statement(founder, rules_.network)) return denied("a founder's signature does not hold");
  }
  for (const Statement& founder : founders) {
    const auto& registration = std::get<Register>(founder.what);
    WalletRecord& owner = wallet_of(registration.delegation.wallet_key);
    owner.founder = true;
    owner.voter = true;
    add_member(founder.node, owner.number, registration);
  }
  // A founder that comes later votes from its registration on.
  for (const crypto::PublicKey& key : rules_.founders) wallet_of(key).founder = true;
  for (const Hash256& anchor : body.genesis->anchors) {
    draft_->rows_.emplace_back();
    draft_->rows_.back().anchor = anchor;
  }
  draft_->time_ms_ = time_ms_;
  draft_->tokenizer_ = body.genesis->tokenizer;
  draft_->beacon_ = tagged_hash("neuroshard/chain/first-beacon/1", ByteSpan(body_root(body, {})));
  update_epoch(false);
  draft_->complete();
  return RegistryPtr(std::move(draft_));
}

}  // namespace neuroshard::chain
