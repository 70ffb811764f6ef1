#include "core/rounds/contribution_book.h"

#include <algorithm>

#include "core/chain/beacon.h"
#include "core/chain/rights.h"

namespace neuroshard::rounds {
namespace {

constexpr std::uint64_t cheap_reveal = 256;  // so many hashes cost less than a signature check

// A member can sign the same content as often as it likes: that is one contribution.
bool is_same(const chain::Contribution& one, const chain::Contribution& other) {
  chain::Contribution copy = one;
  copy.signature = other.signature;
  return copy == other;
}

}  // namespace

std::optional<std::size_t> ContributionBook::Entry::place_of(std::uint32_t row) const {
  for (std::size_t i = 0; i < payloads.size(); ++i)
    if (rows()[i].row == row) return i;
  return std::nullopt;
}

bool ContributionBook::is_complete(const Entry& entry) const {
  for (std::size_t i = 0; i < entry.payloads.size(); ++i)
    if (wants(entry, i)) return false;
  return true;
}

ContributionBook::ContributionBook(const chain::ChainRules& rules, std::vector<RowShape> shapes,
                                   outer::CodecOptions codec, chain::SignatureChecks& checks, RoundPool& pool,
                                   chain::RowSet held)
    : rules_(&rules),
      shapes_(std::move(shapes)),
      codec_(codec),
      checks_(&checks),
      pool_(&pool),
      held_(std::move(held)) {}

void ContributionBook::open(const chain::ChainTip& tip) {
  opening_ = tip.opening;
  opening_height_ = tip.registry->opening_height();
  round_ = tip.registry->round() + 1;
  rows_ = rules_->rows_of(round_);
  lot_ = ContributorLot(*tip.registry, rules_->most_candidates);
  entries_.clear();
  wrong_.clear();
  incomplete_.clear();
  unreadable_.clear();
  count_ = {};
}

ContributionBook ContributionBook::retire() {
  ContributionBook old(*rules_, shapes_, codec_, *checks_, *pool_, held_);
  old.opening_ = opening_;
  old.opening_height_ = opening_height_;
  old.round_ = round_;
  old.rows_ = rows_;
  old.entries_.swap(entries_);
  old.incomplete_.swap(incomplete_);
  return old;
}

Taken ContributionBook::take(const HeldContributionPtr& held, const chain::ChainTip& tip) {
  const chain::Contribution& contribution = held->get();
  if (contribution.round != round_)
    return {contribution.round < round_ ? chain::Verdict::Past : chain::Verdict::Later};
  if (contribution.opening != opening_) return {chain::Verdict::OtherHistory};
  const chain::MemberRecord* member = tip.registry->find(held->id());
  if (member == nullptr || member->registered_height > opening_height_) return {chain::Verdict::NotMember};
  if (!lot_.takes(member->number)) return {chain::Verdict::Limit};
  const auto known = entries_.find(member->number);
  const bool is_known = known != entries_.end();
  if (is_known && is_same(known->second.held->get(), contribution)) {
    add_payloads(member->number, held->payloads());
    return {chain::Verdict::Known, std::nullopt, member->number};
  }
  const auto wrong = wrong_.find(member->number);
  if (wrong != wrong_.end() && wrong->second->get() == contribution) return {chain::Verdict::Inadmissible};
  const chain::Contribution* first = is_known                ? &known->second.held->get()
                                     : wrong != wrong_.end() ? &wrong->second->get()
                                                             : nullptr;
  if (const chain::Verdict verdict = check(held, *member, tip, first); verdict != chain::Verdict::Taken)
    return {verdict};
  if (first != nullptr) return {chain::Verdict::Equivocation, chain::evidence_of(*first, contribution)};
  put(held, member->number);
  add_payloads(member->number, held->payloads());
  return {chain::Verdict::Taken, std::nullopt, member->number};
}

void ContributionBook::put(const HeldContributionPtr& held, std::uint32_t member) {
  const std::size_t rows = held->get().rows.size();
  Entry entry{held, std::vector<Payload>(rows), std::vector<PayloadLeaves>(rows)};
  if (!is_complete(entry)) incomplete_.insert(member);
  entries_.insert_or_assign(member, std::move(entry));
}

void ContributionBook::add_payloads(std::uint32_t member, const std::vector<Payload>& payloads) {
  Entry& entry = entries_.at(member);
  for (std::size_t i = 0; i < payloads.size(); ++i)
    if (wants(entry, i) && payloads[i] && is_readable(entry.rows()[i], *payloads[i]))
      entry.payloads[i] = payloads[i];
  if (is_complete(entry)) incomplete_.erase(member);
}

bool ContributionBook::take_certified(const HeldContributionPtr& held, const chain::ContributionEntry& entry,
                                      const net::NodeId& id) {
  const chain::Contribution& contribution = held->get();
  const bool same = contribution.opening == opening_ && contribution.round == round_ && held->id() == id &&
                    is_entry_of(entry, *held);
  if (!same) return false;
  const Entry* known = find(entry.member);
  if (known != nullptr && is_same(known->held->get(), contribution)) return true;
  chain::Contribution certified = contribution;
  certified.signature = entry.signature;  // the one that the voters checked
  put(std::make_shared<const HeldContribution>(std::move(certified)), entry.member);
  return true;
}

bool ContributionBook::can_be(const chain::RowWork& work) const {
  return work.row < shapes_.size() && work.payload_bytes > 0 &&
         work.payload_bytes <= outer::max_payload_bytes(codec_, shapes_[work.row].values);
}

chain::Verdict ContributionBook::check_rows(const chain::Contribution& contribution,
                                            const chain::MemberRecord& member,
                                            const chain::ChainTip& tip) const {
  if (contribution.rows.empty() || contribution.rows.size() > rows_.size())
    return chain::Verdict::Inadmissible;
  std::size_t at = 0;
  for (const chain::RowWork& work : contribution.rows) {
    while (at < rows_.size() && rows_[at] != work.row) ++at;
    if (at == rows_.size()) return chain::Verdict::Inadmissible;  // not a row of the round, or not ascending
    ++at;
    if (!member.rows.has(work.row) || work.tokens == 0) return chain::Verdict::Inadmissible;
    if (work.tokens > chain::most_row_tokens(*rules_, *tip.registry, work.row, round_))
      return chain::Verdict::TooManyTokens;
    if (!can_be(work)) return chain::Verdict::TooLarge;
  }
  return chain::Verdict::Taken;
}

chain::Verdict ContributionBook::check(const HeldContributionPtr& held, const chain::MemberRecord& member,
                                       const chain::ChainTip& tip, const chain::Contribution* first) {
  const chain::Contribution& contribution = held->get();
  if (const chain::Verdict verdict = check_rows(contribution, member, tip); verdict != chain::Verdict::Taken)
    return verdict;
  const auto is_signed = [&] {
    return checks_->entry(held->entry_of(member.number), opening_, round_, contribution.node,
                          rules_->network);
  };
  // Two contributions are evidence, with any reveal.
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
    if (costly) wrong_.emplace(member.number, held);
    return chain::Verdict::Inadmissible;
  }
  return costly || is_signed() ? chain::Verdict::Taken : chain::Verdict::BadSignature;
}

std::function<bool(const ByteSource&)> ContributionBook::check_of(
    const net::NodeId& contributor, const chain::RowWork& work,
    std::shared_ptr<PayloadReading> reading) const {
  return [contributor, root = work.payload, decodes = rules_->has_holders(), codec = codec_,
          values = shapes_[work.row].values, reading = std::move(reading)](const ByteSource& payload) {
    auto made = read_payload(contributor, payload);
    if (!made.ok() || made->root != root) return false;
    *reading = std::move(*made);
    reading->readable = !decodes || outer::is_readable(codec, payload, values);
    return true;
  };
}

bool ContributionBook::take_payload(std::uint32_t member, std::uint32_t row, Payload payload,
                                    const PayloadReading& reading) {
  const auto found = entries_.find(member);
  if (found == entries_.end()) return false;
  Entry& entry = found->second;
  const auto place = entry.place_of(row);
  if (!place) return false;
  if (entry.payloads[*place]) return true;
  const chain::RowWork& work = entry.rows()[*place];
  // Another contribution may have taken the place of the one whose payload was asked for.
  if (payload->size() != work.payload_bytes || reading.root != work.payload) return false;
  if (reading.readable) {
    entry.payloads[*place] = pool_->hold(std::move(payload));
    if (rules_->has_holders()) entry.leaves[*place] = reading.leaves;
  } else {
    unreadable_.insert(work.payload);
  }
  if (is_complete(entry)) incomplete_.erase(member);
  return reading.readable;
}

// Others check a row chunk by chunk, and would prove a holder wrong that aggregates a payload which can't be decoded.
bool ContributionBook::is_readable(const chain::RowWork& work, const ByteSource& payload) {
  if (!rules_->has_holders()) return true;
  const std::uint64_t values = shapes_[work.row].values;
  if (outer::is_readable(codec_, payload, values)) return true;
  unreadable_.insert(work.payload);
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

std::uint64_t ContributionBook::units(const chain::CommitteePtr& committee) const {
  if (count_.committee == committee && count_.contributions == entries_.size()) return count_.units;
  count_ = {committee, entries_.size(), 0};
  for (const chain::CommitteeMember& voter : committee->members())
    if (find(voter.number) != nullptr) count_.units += voter.units;
  return count_.units;
}

std::vector<std::uint32_t> ContributionBook::members() const {
  std::vector<std::uint32_t> members;
  members.reserve(entries_.size());
  for (const auto& [member, entry] : entries_) members.push_back(member);
  std::sort(members.begin(), members.end());
  return members;
}

chain::Vector ContributionBook::vector(std::uint32_t voter) const {
  chain::Vector vector;
  vector.opening = opening_;
  vector.round = round_;
  vector.voter = voter;
  vector.members = members();
  vector.payloads.assign(rows_.size(), chain::Bitmap(vector.members.size()));
  std::vector<Hash256> ids;
  ids.reserve(vector.members.size());
  for (std::size_t i = 0; i < vector.members.size(); ++i) {
    const Entry& entry = entries_.at(vector.members[i]);
    ids.push_back(entry.held->contribution_id());
    for (std::size_t row = 0; row < rows_.size(); ++row)
      if (const auto place = entry.place_of(rows_[row]); place && entry.payloads[*place])
        vector.payloads[row].set(i);
  }
  vector.contributions = chain::contributions_root(ids);
  return vector;
}

}  // namespace neuroshard::rounds
