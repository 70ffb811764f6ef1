// Closes, results and epochs of BlockApplication.
#include <algorithm>
#include <limits>

#include "core/chain/ascending.h"
#include "core/chain/beacon.h"
#include "core/chain/detail/block_application.h"
#include "core/chain/detail/errors.h"
#include "core/chain/detail/open_row_changes.h"
#include "core/chain/detail/shares.h"
#include "core/chain/detail/size_changes.h"
#include "core/chain/rights.h"

namespace neuroshard::chain {
namespace {

std::uint64_t saturated_sum(std::uint64_t a, std::uint64_t b) {
  return a > std::numeric_limits<std::uint64_t>::max() - b ? std::numeric_limits<std::uint64_t>::max()
                                                           : a + b;
}

// Finite and not negative: bits of such doubles have the order of the values.
bool is_norm(std::uint64_t bits) {
  return bits < 0x7ff0'0000'0000'0000;
}

// The lower median; 0: of nothing.
std::uint64_t lower_median(std::vector<std::uint64_t> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>((values.size() - 1) / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// No contribution of its in so many rounds, and it has been active for so many blocks.
bool is_quiet(const MemberRecord& member, std::uint64_t round, std::uint64_t height) {
  const std::uint64_t last = std::max(member.last_round, member.revealed_round);
  return last + quiet_rounds < round && member.presence_height + quiet_blocks < height;
}

}  // namespace

Expected<void> BlockApplication::check_close(const CloseSection& close) const {
  if (before_.closed_) return denied("the round is closed already");
  if (close.round != before_.round_ + 1) return denied("the block closes another round");
  const std::vector<std::uint32_t> rows = rules_.rows_of(close.round);
  NS_RETURN_IF_ERROR(check_vectors(close, rows.size()));
  return check_contributions(close, rows);
}

Expected<void> BlockApplication::check_vectors(const CloseSection& close, std::size_t rows) const {
  if (close.vectors.size() > committee_->size()) return denied("a close has too many vectors");
  if (!is_ascending(close.vectors, &Vector::voter))
    return denied("a close's vectors are not ascending by voter");
  std::uint64_t units = 0;
  for (const Vector& vector : close.vectors) {
    const std::uint32_t own = committee_->units_of(vector.voter);
    if (own == 0) return denied("a vector is not from the committee");
    units += own;
    if (vector.opening != opening_ || vector.round != close.round)
      return denied("a vector is for another round");
    if (!is_ascending(vector.members, std::identity()) ||
        (!vector.members.empty() && vector.members.back() >= before_.next_member_))
      return denied("a vector lists members twice or unknown ones");
    const bool fits =
        vector.payloads.size() == rows &&
        std::all_of(vector.payloads.begin(), vector.payloads.end(),
                    [&](const Bitmap& payloads) { return payloads.size() == vector.members.size(); });
    if (!fits) return denied("a vector has other rows or members than the round");
    if (!may_withhold(before_, vector))
      return denied("a vector says that a result is withheld which its voter was not drawn to check");
  }
  if (!committee_->is_quorum(units)) return denied("a close has vectors of too few units");
  return {};
}

Expected<void> BlockApplication::check_contributions(const CloseSection& close,
                                                     const std::vector<std::uint32_t>& rows) const {
  if (!is_ascending(close.contributions, &ContributionEntry::member))
    return denied("a close's contributions are not ascending by member");
  std::uint64_t most_tokens = 0;
  for (const std::uint32_t row : rows)
    most_tokens = std::max(most_tokens, most_row_tokens(rules_, before_, row, close.round));
  for (const ContributionEntry& entry : close.contributions) {
    const MemberRecord* contributor = before_.find(entry.member);
    if (contributor == nullptr) return denied("a contribution is from no member");
    if (contributor->registered_height > before_.opening_height_)
      return denied("a contribution is from a member that came after the round began");
    if (entry.tokens > most_tokens) return denied("a contribution claims more tokens than a round allows");
  }
  std::vector<std::uint8_t> listed(close.contributions.size(), 0);
  for (const Vector& vector : close.vectors) {
    std::size_t at = 0;  // both lists ascend
    for (const std::uint32_t number : vector.members) {
      while (at < listed.size() && close.contributions[at].member < number) ++at;
      if (at == listed.size()) break;
      if (close.contributions[at].member == number) listed[at] = 1;
    }
  }
  if (std::find(listed.begin(), listed.end(), 0) != listed.end())
    return denied("a contribution is in no vector of the close");
  return {};
}

Expected<void> BlockApplication::check_close_signatures(const CloseSection& close) const {
  for (const Vector& vector : close.vectors) {
    const CommitteeMember& voter = committee_->members()[*committee_->position(vector.voter)];
    if (!checks_->vector(claim_of(vector), voter.key, rules_.network))
      return denied("a vector's signature does not hold");
  }
  for (const ContributionEntry& entry : close.contributions) {
    if (!checks_->entry(entry, opening_, close.round, before_.find(entry.member)->key, rules_.network))
      return denied("a contribution's signature does not hold");
  }
  return {};
}

Expected<void> BlockApplication::check_reveals(const CloseSection& close) const {
  for (const ContributionEntry& entry : close.contributions) {
    const MemberRecord& contributor = *before_.find(entry.member);
    if (!reveal_holds(contributor.beacon, close.round, entry.reveal, contributor.revealed,
                      contributor.revealed_round))
      return denied("a contribution reveals a wrong value");
  }
  return {};
}

void BlockApplication::apply_close(const CloseSection& close) {
  draft_->beacon_ = beacon_after(before_, *committee_, close);
  count_contributions(close);
  // A voter's silence is noticed before (presence.h). Nobody hears the others but by their contributions.
  for (MemberRecord& record : draft_->members_)
    if (record.presence == Presence::Active && committee_->units_of(record.number) == 0 &&
        is_quiet(record, close.round, height_))
      set_presence(record, Presence::Dormant);
  ClosedRound closed;
  closed.height = height_;
  closed.contributions = close.contributions;
  closed.contributors = round_contributors(rules_, before_, *committee_, close);
  draft_->closed_ = std::move(closed);
  if (!rules_.has_holders()) return;
  OpenRowChanges changes(rules_, *draft_);
  changes.take_back_withheld(close);
  changes.open(before_, *committee_, close);
}

void BlockApplication::count_contributions(const CloseSection& close) {
  for (const ContributionEntry& entry : close.contributions) {
    MemberRecord& contributor = member(*before_.find(entry.member));
    contributor.revealed = entry.reveal;
    contributor.revealed_round = close.round;
  }
  const std::vector<std::uint32_t> counted = counted_contributors(rules_, before_, *committee_, close);
  const std::vector<Share> shares = limited_shares(all_shares(before_), before_, before_.beacon_);
  const auto tokens_of = [&close](std::uint32_t number) {
    return find_by(close.contributions, &ContributionEntry::member, number)->tokens;
  };
  std::vector<std::uint64_t> voters_tokens;
  for (const std::uint32_t number : counted)
    if (find_by(shares, &Share::member, number) != nullptr) voters_tokens.push_back(tokens_of(number));
  const std::uint64_t median = lower_median(std::move(voters_tokens));
  for (const std::uint32_t number : counted) {
    MemberRecord& contributor = member(*before_.find(number));
    ++contributor.contributions;
    contributor.last_round = close.round;
    WalletRecord& owner = wallet(contributor.wallet);
    const std::uint64_t tokens = tokens_of(number);
    owner.counted_tokens = saturated_sum(owner.counted_tokens, tokens);
    // Without a voter's work there is nothing to compare with.
    if (median > 0 && tokens >= median - median / 2 && owner.last_qualifying != close.round) {
      owner.last_qualifying = close.round;
      ++owner.qualifying;
    }
  }
}

Expected<void> BlockApplication::check_result(const ResultSection& result) const {
  if (!before_.closed_) return denied("there is no closed round");
  if (result.round != before_.round_ + 1) return denied("the result is of another round");
  const std::vector<std::uint32_t> rows = rules_.rows_of(result.round);
  if (!std::equal(rows.begin(), rows.end(), result.rows.begin(), result.rows.end(),
                  [](std::uint32_t number, const RowResult& row) { return row.row == number; }))
    return denied("the result has other rows than the round");
  if (before_.size_.changing) return SizeChanges::check(result);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const RowResult& row = result.rows[i];
    if (row.carried) {
      if (row.anchor != Hash256{} || row.trace != Hash256{} || row.norm_bits != 0)
        return denied("a carried row has a result");
    } else if (before_.closed_->contributors[i].empty()) {
      return denied("a row without contributors is not carried");
    } else if (row.anchor == Hash256{} || !is_norm(row.norm_bits)) {
      return denied("a row's anchor or norm is not valid");
    }
  }
  return {};
}

void BlockApplication::apply_result(const ResultSection& result) {
  if (before_.size_.changing) SizeChanges(rules_, *draft_).end(result);
  for (const RowResult& row : result.rows) {
    if (row.carried) continue;
    RowRecord& record = draft_->rows_[row.row];
    record.anchor = row.anchor;
    record.changed_round = result.round;
    if (row.norm_bits == 0) continue;  // says nothing about later norms
    std::copy_backward(record.norm_bits.begin(), record.norm_bits.end() - 1, record.norm_bits.end());
    record.norm_bits.front() = row.norm_bits;
  }
  OpenRowChanges(rules_, *draft_).note(result);
  draft_->round_ = result.round;
  draft_->closed_.reset();
  draft_->opening_height_ = height_;
  draft_->opening_hash_ = {};
  draft_->openings_.insert(draft_->openings_.begin(), opening_);
  if (draft_->openings_.size() >= evidence_rounds) draft_->openings_.pop_back();
  for (MemberRecord& record : draft_->members_) {
    if (!record.next_beacon || record.next_beacon->first_round > result.round + 1) continue;
    record.beacon = *record.next_beacon;
    record.next_beacon.reset();
    record.revealed = {};
    record.revealed_round = 0;
  }
  if (restricted_) return;
  if (!before_.size_.changing) SizeChanges(rules_, *draft_).count();
  for (const std::uint32_t number : due_admissions(rules_, before_)) {
    WalletRecord& admitted = wallet(number);
    admitted.voter = true;
    admitted.admitted_height = height_;
  }
}

void BlockApplication::update_epoch(bool round_ended) {
  Registry& draft = *draft_;
  const bool drawn = !draft.epoch_committee_.empty();
  const bool over = round_ended && draft.round_ >= draft.epoch_round_ + rules_.epoch_rounds &&
                    time_ms_ >= draft.epoch_ms_ + rules_.epoch_least_ms;
  if (drawn && !over) return;
  draft.epoch_committee_ = draw_epoch(draft, draft.beacon_);
  const bool begun = !draft.epoch_committee_.empty();
  draft.epoch_round_ = begun ? draft.round_ : 0;
  draft.epoch_ms_ = begun ? time_ms_ : 0;
}

}  // namespace neuroshard::chain
