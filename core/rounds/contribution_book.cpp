#include "core/rounds/contribution_book.h"

#include <algorithm>

#include "core/chain/beacon.h"
#include "core/chain/rights.h"
#include "core/crypto/hash.h"
#include "core/crypto/merkle.h"

namespace neuroshard::rounds {
namespace {

constexpr std::uint64_t cheap_reveal = 256;  // so many hashes cost less than a signature check

}  // namespace

Hash256 payload_root(const net::NodeId& contributor, ByteSpan payload) {
  std::vector<Hash256> leaves;
  Bytes leaf;
  std::size_t at = 0;
  do {
    const ByteSpan slice = payload.subspan(at, std::min(payload_slice_bytes, payload.size() - at));
    leaf.assign(contributor.begin(), contributor.end());
    leaf.insert(leaf.end(), slice.begin(), slice.end());
    leaves.push_back(crypto::merkle_leaf(leaf));
    at += slice.size();
  } while (at < payload.size());
  return crypto::merkle_root(leaves);
}

bool ContributionBook::Entry::complete() const {
  return std::all_of(payloads.begin(), payloads.end(),
                     [](const PayloadBytes& one) { return one != nullptr; });
}

ContributionBook::ContributionBook(const chain::ChainRules& rules, std::vector<RowShape> shapes,
                                   outer::CodecOptions codec, chain::SignatureChecks& checks, RoundPool& pool)
    : rules_(&rules), shapes_(std::move(shapes)), codec_(codec), checks_(&checks), pool_(&pool) {}

void ContributionBook::open(const chain::ChainTip& tip) {
  opening_ = tip.opening;
  opening_height_ = tip.registry->opening_height();
  round_ = tip.registry->round() + 1;
  rows_ = rules_->rows_of(round_);
  entries_.clear();
  wrong_.clear();
  incomplete_.clear();
}

ContributionBook ContributionBook::retire() {
  ContributionBook old(*rules_, shapes_, codec_, *checks_, *pool_);
  old.opening_ = opening_;
  old.opening_height_ = opening_height_;
  old.round_ = round_;
  old.rows_ = rows_;
  old.entries_.swap(entries_);
  old.incomplete_.swap(incomplete_);
  return old;
}

ContributionBook::Taken ContributionBook::take(const chain::Contribution& contribution,
                                               const chain::ChainTip& tip) {
  if (contribution.round != round_)
    return {contribution.round < round_ ? chain::Verdict::Past : chain::Verdict::Later, std::nullopt};
  if (contribution.opening != opening_) return {chain::Verdict::OtherHistory, std::nullopt};
  const net::NodeId id = crypto::node_id(contribution.node);
  const chain::MemberRecord* member = tip.registry->find(id);
  if (member == nullptr || member->registered_height > opening_height_)
    return {chain::Verdict::NotMember, std::nullopt};
  const auto known = entries_.find(member->number);
  const bool is_known = known != entries_.end();
  if (is_known && *known->second.contribution == contribution) return {chain::Verdict::Known, std::nullopt};
  const auto wrong = wrong_.find(member->number);
  if (wrong != wrong_.end() && wrong->second == contribution)
    return {chain::Verdict::Inadmissible, std::nullopt};
  const chain::Contribution* first = is_known                ? known->second.contribution.get()
                                     : wrong != wrong_.end() ? &wrong->second
                                                             : nullptr;
  if (const chain::Verdict verdict = check(contribution, *member, tip, first);
      verdict != chain::Verdict::Taken)
    return {verdict, std::nullopt};
  if (first != nullptr) return {chain::Verdict::Equivocation, chain::evidence_of(*first, contribution)};
  put(contribution, member->number, id);
  return {chain::Verdict::Taken, std::nullopt};
}

void ContributionBook::put(const chain::Contribution& contribution, std::uint32_t member,
                           const net::NodeId& id) {
  Entry entry;
  entry.contribution = pool_->hold(contribution);
  entry.member = member;
  entry.id = id;
  entry.contribution_id = chain::contribution_id(chain::entry_of(contribution, member));
  entry.payloads.resize(contribution.rows.size());
  if (!entry.complete()) incomplete_.insert(member);
  entries_.insert_or_assign(member, std::move(entry));
}

bool ContributionBook::take_certified(const chain::Contribution& contribution,
                                      const chain::ContributionEntry& entry, const net::NodeId& id) {
  const bool same = contribution.opening == opening_ && contribution.round == round_ &&
                    crypto::node_id(contribution.node) == id &&
                    chain::entry_of(contribution, entry.member) == entry;
  if (!same) return false;
  const Entry* known = find(entry.member);
  if (known == nullptr || !(*known->contribution == contribution)) put(contribution, entry.member, id);
  return true;
}

chain::Verdict ContributionBook::check_rows(const chain::Contribution& contribution,
                                            const chain::ChainTip& tip) const {
  if (contribution.rows.empty() || contribution.rows.size() > rows_.size())
    return chain::Verdict::Inadmissible;
  std::size_t at = 0;
  for (const chain::RowWork& work : contribution.rows) {
    while (at < rows_.size() && rows_[at] != work.row) ++at;
    if (at == rows_.size()) return chain::Verdict::Inadmissible;  // not a row of the round, or not ascending
    ++at;
    if (work.tokens == 0) return chain::Verdict::Inadmissible;
    if (work.tokens > chain::most_row_tokens(*rules_, *tip.registry, work.row, round_))
      return chain::Verdict::TooManyTokens;
    if (work.payload_bytes == 0 ||
        work.payload_bytes > outer::max_payload_bytes(codec_, shapes_[work.row].values))
      return chain::Verdict::TooLarge;
  }
  return chain::Verdict::Taken;
}

chain::Verdict ContributionBook::check(const chain::Contribution& contribution,
                                       const chain::MemberRecord& member, const chain::ChainTip& tip,
                                       const chain::Contribution* first) {
  if (const chain::Verdict verdict = check_rows(contribution, tip); verdict != chain::Verdict::Taken)
    return verdict;
  const auto is_signed = [&] {
    return checks_->entry(chain::entry_of(contribution, member.number), opening_, round_, contribution.node,
                          rules_->network);
  };
  // Whatever it reveals, two of them are evidence.
  if (first != nullptr) return is_signed() ? chain::Verdict::Taken : chain::Verdict::BadSignature;
  const bool next = member.next_beacon && round_ >= member.next_beacon->first_round;
  const chain::BeaconCommitment& commitment = next ? *member.next_beacon : member.beacon;
  const bool known =
      !next && member.revealed_round >= commitment.first_round && member.revealed_round < round_;
  const std::uint64_t known_round = known ? member.revealed_round : 0;
  const bool costly = chain::reveal_cost(commitment, round_, known_round) > cheap_reveal;
  if (costly && !is_signed()) return chain::Verdict::BadSignature;
  if (!chain::reveal_holds(commitment, round_, contribution.reveal, known ? member.revealed : Hash256{},
                           known_round)) {
    if (costly) wrong_.emplace(member.number, contribution);
    return chain::Verdict::Inadmissible;
  }
  return costly || is_signed() ? chain::Verdict::Taken : chain::Verdict::BadSignature;
}

bool ContributionBook::take_payload(std::uint32_t member, std::uint32_t row, Bytes payload) {
  const auto found = entries_.find(member);
  if (found == entries_.end()) return false;
  Entry& entry = found->second;
  for (std::size_t i = 0; i < entry.payloads.size(); ++i) {
    const chain::RowWork& work = entry.contribution->rows[i];
    if (work.row != row) continue;
    if (entry.payloads[i]) return true;
    if (payload.size() != work.payload_bytes || payload_root(entry.id, payload) != work.payload) return false;
    entry.payloads[i] = pool_->hold(std::move(payload));
    if (entry.complete()) incomplete_.erase(member);
    return true;
  }
  return false;
}

const ContributionBook::Entry* ContributionBook::find(std::uint32_t member) const {
  const auto found = entries_.find(member);
  return found == entries_.end() ? nullptr : &found->second;
}

const ContributionBook::Entry* ContributionBook::find(const net::NodeId& id,
                                                      const chain::ChainTip& tip) const {
  const chain::MemberRecord* member = tip.registry->find(id);
  return member == nullptr ? nullptr : find(member->number);
}

PayloadBytes ContributionBook::payload(std::uint32_t member, std::uint32_t row) const {
  const Entry* entry = find(member);
  if (entry == nullptr) return nullptr;
  for (std::size_t i = 0; i < entry->payloads.size(); ++i)
    if (entry->contribution->rows[i].row == row) return entry->payloads[i];
  return nullptr;
}

chain::Vector ContributionBook::vector(std::uint32_t voter) const {
  chain::Vector vector;
  vector.opening = opening_;
  vector.round = round_;
  vector.voter = voter;
  std::vector<Hash256> ids;
  for (const auto& [number, entry] : entries_) {
    vector.members.push_back(number);
    ids.push_back(entry.contribution_id);
  }
  vector.contributions = chain::contributions_root(ids);
  for (const std::uint32_t row : rows_) {
    chain::Bitmap has(entries_.size());
    std::size_t bit = 0;
    for (const auto& [number, entry] : entries_) {
      if (payload(number, row)) has.set(bit);
      ++bit;
    }
    vector.payloads.push_back(std::move(has));
  }
  return vector;
}

}  // namespace neuroshard::rounds
