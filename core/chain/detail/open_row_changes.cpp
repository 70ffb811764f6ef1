#include "core/chain/detail/open_row_changes.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "core/chain/ascending.h"
#include "core/chain/rights.h"

namespace neuroshard::chain {
namespace {

// Drops the newest norms of a row.
void forget_norms(RowRecord& row, std::size_t count) {
  auto& norms = row.norm_bits;
  std::rotate(norms.begin(), norms.begin() + static_cast<std::ptrdiff_t>(count), norms.end());
  std::fill(norms.end() - static_cast<std::ptrdiff_t>(count), norms.end(), 0);
}

template <class Record>
void insert_at_its_place(std::vector<Record>& records, Record added) {
  const auto at = std::lower_bound(records.begin(), records.end(), added,
                                   [](const Record& a, const Record& b) { return a.place() < b.place(); });
  records.insert(at, std::move(added));
}

OpenRow open_row_of(const ChainRules& rules, const Registry& before, std::uint32_t row,
                    const CloseSection& close, const std::vector<std::uint32_t>& contributors) {
  OpenRow open;
  open.row = row;
  open.round = close.round;
  open.before = before.rows()[row].anchor;
  open.before_round = before.rows()[row].changed_round;
  std::vector<RowContributor> named;
  for (const std::uint32_t number : contributors) {
    const ContributionEntry* entry = find_by(close.contributions, &ContributionEntry::member, number);
    named.push_back({before.find(number)->id, entry->work});
  }
  open.contributors = contributors_hash(named);
  open.most_tokens = most_row_tokens(rules, before, row, close.round);
  if (const auto norm = most_row_norm(rules, before, row, close.round))
    open.most_norm_bits = std::bit_cast<std::uint64_t>(*norm);
  return open;
}

}  // namespace

void OpenRowChanges::insert(OpenRow row) {
  if (draft_.open_row(row.row, row.round) == nullptr) insert_at_its_place(draft_.open_rows_, std::move(row));
}

void OpenRowChanges::open(const Registry& before, const Committee& committee, const CloseSection& close) {
  const std::vector<std::uint32_t> rows = rules_.rows_of(close.round);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    std::vector<std::uint32_t>& contributors = draft_.closed_->contributors[i];
    // Its members trained from an anchor that was taken back since.
    if (draft_.open_row(rows[i], close.round) != nullptr) contributors.clear();
    if (contributors.empty()) continue;
    OpenRow open = open_row_of(rules_, before, rows[i], close, contributors);
    open.checkers = draw_checkers(before, committee, draft_.beacon_, rows[i]);
    insert(std::move(open));
  }
}

void OpenRowChanges::note(const ResultSection& result) {
  for (const RowResult& row : result.rows)
    for (OpenRow& open : draft_.open_rows_)
      if (open.row == row.row && open.round == result.round && !row.carried) {
        open.result = result_hash(row);
        open.norm_bits = row.norm_bits;
      }
  std::erase_if(draft_.open_rows_,
                [&](const OpenRow& open) { return open.round + rounds_to_settle <= result.round; });
  std::erase_if(draft_.strikes_,
                [&](const StrikeRecord& strike) { return strike.round + strike_rounds < result.round; });
}

void OpenRowChanges::take_back_withheld(const CloseSection& close) {
  if (close.round < rounds_to_settle) return;
  const std::uint64_t round = close.round - rounds_to_settle;
  std::vector<std::uint32_t> rows;
  for (const OpenRow& open : draft_.open_rows_)
    if (open.round == round && open.result != Hash256{} &&
        count_withheld(open, close.vectors) >= withheld_to_take_back)
      rows.push_back(open.row);
  for (const std::uint32_t row : rows) take_back(row, round);
}

void OpenRowChanges::take_back_wrong(const RowResult& result, std::uint64_t round) {
  const OpenRow* wrong = draft_.open_row(result.row, round);
  // Else it was not certified, or is taken back already.
  if (wrong != nullptr && wrong->result == result_hash(result)) take_back(result.row, round);
}

void OpenRowChanges::take_back(std::uint32_t number, std::uint64_t round) {
  const OpenRow& taken = *draft_.open_row(number, round);
  RowRecord& record = draft_.rows_[number];
  record.anchor = taken.before;
  record.changed_round = taken.before_round;
  std::size_t norms = 0;
  for (OpenRow& open : draft_.open_rows_) {
    if (open.row != number || open.round < round) continue;
    norms += open.norm_bits != 0 ? 1 : 0;
    open.result = {};
    open.norm_bits = 0;
  }
  forget_norms(record, norms);
  // The round in progress began with that anchor: nothing of it counts for the row.
  const std::uint64_t in_progress = draft_.round_ + 1;
  if (draft_.closed_) {
    const std::vector<std::uint32_t> rows = rules_.rows_of(in_progress);
    const auto at = std::lower_bound(rows.begin(), rows.end(), number) - rows.begin();
    draft_.closed_->contributors[static_cast<std::size_t>(at)].clear();
    return;
  }
  OpenRow none;
  none.row = number;
  none.round = in_progress;
  insert(std::move(none));
}

std::vector<std::uint32_t> OpenRowChanges::strike(std::uint32_t wallet, const AttestedRow& attested) {
  const StrikeRecord added{wallet, attested.round, result_hash(attested.result)};
  std::vector<std::uint32_t> expelled;
  bool own = false;
  for (const StrikeRecord& strike : draft_.strikes_) {
    own = own || strike.wallet == wallet;
    if (strike.wallet == wallet || strike.result != added.result) continue;
    own = true;
    if (const WalletRecord* other = draft_.wallet(strike.wallet); other != nullptr && !other->expelled)
      expelled.push_back(strike.wallet);
  }
  if (own) expelled.push_back(wallet);
  std::sort(expelled.begin(), expelled.end());
  insert_at_its_place(draft_.strikes_, added);
  return expelled;
}

}  // namespace neuroshard::chain
