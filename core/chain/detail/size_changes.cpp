#include "core/chain/detail/size_changes.h"

#include <algorithm>
#include <utility>

#include "core/chain/detail/errors.h"
#include "core/chain/detail/shares.h"

namespace neuroshard::chain {
namespace {

// What voters' members offer. Others can register as many nodes as they like.
struct Offered {
  std::uint64_t units = 0, with_room = 0, tiers = 0;
  Offered(const Registry& registry, std::vector<Share> shares, const SizeNeeds& needs) {
    for (const Share& share : limited_shares(std::move(shares), registry, registry.beacon())) {
      const std::uint32_t offered = registry.find(share.member)->memory_tiers;
      units += share.units;
      tiers += offered;
      if (offered >= needs.member_tiers) with_room += share.units;
    }
  }
  bool is_enough(const SizeNeeds& needs, std::uint32_t room_percent, std::uint32_t offer_percent) const {
    return units > 0 && 100 * with_room >= room_percent * units &&
           100 * tiers >= std::uint64_t{offer_percent} * needs.network_tiers;
  }
};

}  // namespace

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

std::uint32_t SizeChanges::asked_for() const {
  const std::uint32_t now = draft_.size_.size;
  if (now < rules_.sizes.size()) {
    const SizeNeeds& larger = rules_.sizes[now];
    if (Offered(draft_, all_shares(draft_), larger)
            .is_enough(larger, larger_room_percent, larger_offer_percent))
      return now + 1;
  }
  if (now > 0) {
    const SizeNeeds& present = rules_.sizes[now - 1];
    if (!Offered(draft_, seen_shares(draft_), present).is_enough(present, present_room_percent, 100))
      return now - 1;
  }
  return now;
}

void SizeChanges::count() {
  if (rules_.sizes.empty()) return;
  SizeRecord& size = draft_.size_;
  const std::uint32_t asked = asked_for();
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
