#include "core/chain/detail/size_changes.h"

#include <utility>

#include "core/chain/detail/errors.h"
#include "core/chain/size_demand.h"

namespace neuroshard::chain {

Expected<void> SizeChanges::check(const ResultSection& result) {
  const bool carried = result.rows.front().carried;
  for (const RowResult& row : result.rows) {
    if (row.carried != carried) return denied("a result changes the size of some rows only");
    if (carried && (row.anchor != Hash256{} || row.trace != Hash256{} || row.norm_bits != 0))
      return denied("a carried row has a result");
    if (!carried && (row.anchor == Hash256{} || row.trace != Hash256{} || row.norm_bits != 0))
      return denied("a row of another size has an anchor and nothing else");
  }
  return {};
}

void SizeChanges::end(const ResultSection& result) {
  SizeRecord& size = draft_.size_;
  if (!result.rows.front().carried) {
    size.size = size.next;
    // Norms of deltas of another size are no measure, and no row can return to another size.
    for (RowRecord& row : draft_.rows_) row.norm_bits = {};
    draft_.open_rows_.clear();
  }
  size = {size.size, size.size, 0, false};
}

void SizeChanges::count() {
  if (rules_.sizes.empty()) return;
  SizeRecord& size = draft_.size_;
  const std::uint32_t asked = size_demand(rules_.sizes, draft_).asked;
  size.results = asked == size.next ? size.results + 1 : 1;
  size.next = asked;
  if (asked == size.size) size.results = 0;
  if (size.results < results_to_change_size) return;
  size.changing = true;
  ClosedRound closed;
  closed.height = draft_.opening_height_;
  closed.contributors.resize(rules_.rows_of(draft_.round_ + 1).size());
  draft_.closed_ = std::move(closed);
}

}  // namespace neuroshard::chain
