#include "core/plan/part_moves.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <tuple>

#include "core/crypto/hash.h"

namespace neuroshard::plan {
namespace {

// For more speed alone one of so many nodes moves, and so many in all.
constexpr std::size_t most_at_once = 8;

struct PartCount {
  std::set<std::uint32_t> wallets;  // of holders that train or will soon
  std::size_t awake = 0, all = 0;   // nodes: those, and with the ones asleep
};

std::vector<PartCount> count_holders(std::size_t parts, const std::vector<PartHolder>& holders) {
  std::vector<PartCount> counts(parts);
  for (const PartHolder& holder : holders) {
    PartCount& count = counts.at(holder.part);
    ++count.all;
    if (holder.state == HolderState::Asleep) continue;
    ++count.awake;
    count.wallets.insert(holder.wallet);
  }
  return counts;
}

Hash256 draw(const Hash256& lot, const Hash256& node) {
  crypto::Sha256 hash;
  hash.update("neuroshard/plan/part-move/1").update(lot).update(node);
  return hash.finish();
}

std::optional<std::uint32_t> neediest(const std::vector<PartCount>& counts,
                                      const std::vector<bool>& can_get) {
  const auto need = [&](std::uint32_t part) {
    const PartCount& count = counts[part];
    return std::tuple(std::min(count.wallets.size(), least_wallets), count.all, count.awake, part);
  };
  std::optional<std::uint32_t> worst;
  for (std::uint32_t part = 0; part < counts.size(); ++part)
    if (can_get[part] && (!worst || need(part) < need(*worst))) worst = part;
  return worst;
}

// Whether one holder less in `from` and one more in `to` is worth a move.
// evens_out: also for more speed alone.
std::optional<MoveReason> reason_to_move(const PartCount& from, const PartCount& to, bool evens_out) {
  if (to.wallets.empty()) {
    if (from.awake >= 2) return MoveReason::NoHolder;
    return std::nullopt;
  }
  if (to.wallets.size() < least_wallets) {
    if (from.wallets.size() > least_wallets) return MoveReason::OneWallet;
    return std::nullopt;
  }
  // One of four holders more is a quarter of the speed.
  const std::size_t least = to.all + std::max<std::size_t>(2, to.all / 4);
  if (evens_out && from.all >= least && from.wallets.size() > least_wallets) return MoveReason::FewHolders;
  return std::nullopt;
}

// The holders of a part that may leave it, in order: of wallets with several nodes there first, whose others stay.
std::vector<const PartHolder*> leavers(const std::vector<PartHolder>& holders, std::uint32_t from,
                                       const PartCount& to, const Hash256& lot) {
  std::map<std::uint32_t, std::size_t> of_wallet;  // nodes there that are awake
  for (const PartHolder& holder : holders)
    if (holder.part == from && holder.state != HolderState::Asleep) ++of_wallet[holder.wallet];
  std::vector<std::tuple<std::size_t, Hash256, const PartHolder*>> order;
  for (const PartHolder& holder : holders) {
    if (holder.part != from || holder.state != HolderState::Active || !holder.movable) continue;
    if (to.wallets.count(holder.wallet) > 0 && to.wallets.size() < least_wallets) continue;
    order.emplace_back(holders.size() - of_wallet[holder.wallet], draw(lot, holder.node), &holder);
  }
  std::sort(order.begin(), order.end());
  std::vector<const PartHolder*> sorted;
  for (const auto& [alone, drawn, holder] : order) sorted.push_back(holder);
  return sorted;
}

}  // namespace

std::vector<PartMove> plan_part_moves(const std::vector<bool>& can_get,
                                      const std::vector<PartHolder>& holders, const Hash256& lot) {
  std::vector<PartHolder> after = holders;
  const bool calm = std::none_of(holders.begin(), holders.end(), [](const PartHolder& holder) {
    return holder.state == HolderState::Arriving;
  });
  std::size_t evening = calm ? std::min(most_at_once, 1 + holders.size() / most_at_once) : 0;
  std::vector<PartMove> moves;
  while (moves.size() < holders.size()) {
    const std::vector<PartCount> counts = count_holders(can_get.size(), after);
    const auto needs = neediest(counts, can_get);
    if (!needs) return moves;
    const std::uint32_t to = *needs;
    std::vector<std::uint32_t> from(counts.size());
    std::iota(from.begin(), from.end(), 0u);
    std::sort(from.begin(), from.end(), [&](std::uint32_t a, std::uint32_t b) {
      return std::tuple(counts[b].awake, counts[b].all, a) < std::tuple(counts[a].awake, counts[a].all, b);
    });
    std::optional<PartMove> move;
    for (std::size_t i = 0; i < from.size() && !move; ++i) {
      const auto reason = reason_to_move(counts[from[i]], counts[to], evening > 0);
      if (from[i] == to || !reason) continue;
      const auto order = leavers(after, from[i], counts[to], lot);
      if (order.empty()) continue;
      move = PartMove{from[i], to, *reason, {}};
      for (const PartHolder* holder : order) move->order.push_back(holder->node);
    }
    if (!move) return moves;
    const auto mover = std::find_if(after.begin(), after.end(), [&](const PartHolder& holder) {
      return holder.node == move->order.front();
    });
    mover->part = to;
    mover->state = HolderState::Arriving;
    evening = move->reason == MoveReason::FewHolders ? evening - 1 : 0;
    moves.push_back(std::move(*move));
  }
  return moves;
}

std::uint32_t choose_part(const std::vector<bool>& can_hold, const std::vector<PartHolder>& holders,
                          const Hash256& node) {
  const auto parts = static_cast<std::uint32_t>(can_hold.size());
  const std::vector<PartCount> counts = count_holders(parts, holders);
  std::optional<std::uint32_t> best;
  const auto place = [&](std::uint32_t part) {
    const PartCount& count = counts[part];
    return std::tuple(std::min(count.wallets.size(), least_wallets), count.all, count.awake,
                      (part + parts - node[0] % parts) % parts);
  };
  for (std::uint32_t part = 0; part < parts; ++part) {
    if (can_hold[part] && (!best || place(part) < place(*best))) best = part;
  }
  return best.value_or(node[0] % parts);
}

}  // namespace neuroshard::plan
