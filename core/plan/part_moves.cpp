#include "core/plan/part_moves.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <tuple>

#include "core/crypto/hash.h"
#include "core/plan/holder_speeds.h"

namespace neuroshard::plan {
namespace {

// For more speed alone one of so many nodes moves, and so many in all.
constexpr std::size_t most_at_once = 8;
// And only if one part is so many times as fast as another.
constexpr double worth_a_move = 1.25;

struct PartCount {
  std::set<std::uint32_t> wallets;  // of holders that train or will soon
  std::size_t awake = 0;            // nodes of these
  // Together, and with those asleep.
  double awake_speed = 0, speed = 0;
  double work = 1;  // of the part

  // Tokens in a unit of time.
  double awake_rate() const { return awake_speed / work; }
  double rate() const { return speed / work; }
};

// A holder with the speed that counts.
struct Counted {
  PartHolder holder;
  double speed = 0;
};

std::vector<Counted> with_speeds(const std::vector<PartHolder>& holders) {
  std::vector<SaidSpeed> said;
  for (const PartHolder& holder : holders) said.push_back({holder.speed, holder.wallet});
  const std::vector<double> speeds = counted_speeds(said);
  std::vector<Counted> counted;
  for (std::size_t i = 0; i < holders.size(); ++i) counted.push_back({holders[i], speeds[i]});
  return counted;
}

std::vector<PartCount> count_holders(const std::vector<ModelPart>& parts,
                                     const std::vector<Counted>& holders) {
  std::vector<PartCount> counts(parts.size());
  for (std::size_t part = 0; part < parts.size(); ++part) counts[part].work = parts[part].work;
  for (const auto& [holder, speed] : holders) {
    PartCount& count = counts.at(holder.part);
    count.speed += speed;
    if (holder.state == HolderState::Asleep) continue;
    ++count.awake;
    count.awake_speed += speed;
    count.wallets.insert(holder.wallet);
  }
  return counts;
}

Hash256 draw(const Hash256& lot, const Hash256& node) {
  crypto::Sha256 hash;
  hash.update("neuroshard/plan/part-move/1").update(lot).update(node);
  return hash.finish();
}

// The less, the more it needs another holder.
auto supply(const PartCount& count) {
  return std::tuple(std::min(count.wallets.size(), least_wallets), count.rate(), count.awake_rate());
}

std::optional<std::uint32_t> neediest(const std::vector<PartCount>& counts,
                                      const std::vector<ModelPart>& parts) {
  std::optional<std::uint32_t> worst;
  for (std::uint32_t part = 0; part < counts.size(); ++part)
    if (parts[part].can_get && (!worst || supply(counts[part]) < supply(counts[*worst]))) worst = part;
  return worst;
}

// Whether a holder less in `from` and one more in `to` is worth a move.
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
  const bool is_faster = from.speed * to.work >= worth_a_move * to.speed * from.work;
  if (evens_out && is_faster && from.wallets.size() > least_wallets) return MoveReason::SlowPart;
  return std::nullopt;
}

// The slower of the two parts after the move, in tokens.
double rate_after(const PartCount& from, const PartCount& to, double speed) {
  return std::min((from.speed - speed) / from.work, (to.speed + speed) / to.work);
}

// The holders of `from` that may leave it, in order: of wallets with several nodes there first, whose others stay; then those after whose
// move the slower part is fastest.
std::vector<const Counted*> leavers(const std::vector<Counted>& holders, std::uint32_t from,
                                    const std::vector<PartCount>& counts, std::uint32_t to, MoveReason reason,
                                    const Hash256& lot) {
  std::map<std::uint32_t, std::size_t> of_wallet;  // nodes there that are awake
  for (const auto& [holder, speed] : holders)
    if (holder.part == from && holder.state != HolderState::Asleep) ++of_wallet[holder.wallet];
  const PartCount& there = counts[to];
  std::vector<std::tuple<std::size_t, double, Hash256, const Counted*>> order;
  for (const Counted& counted : holders) {
    const auto& [holder, speed] = counted;
    if (holder.part != from || holder.state != HolderState::Active || !holder.movable) continue;
    if (there.wallets.count(holder.wallet) > 0 && there.wallets.size() < least_wallets) continue;
    // The part that it leaves stays the faster one: else the next plan would have it move back.
    const bool overshoots =
        (counts[from].speed - speed) * there.work < (there.speed + speed) * counts[from].work;
    if (reason == MoveReason::SlowPart && overshoots) continue;
    order.emplace_back(holders.size() - of_wallet[holder.wallet], -rate_after(counts[from], there, speed),
                       draw(lot, holder.node), &counted);
  }
  std::sort(order.begin(), order.end());
  std::vector<const Counted*> sorted;
  for (const auto& [alone, rate, drawn, counted] : order) sorted.push_back(counted);
  return sorted;
}

// The move that helps the neediest part most.
std::optional<PartMove> next_move(const std::vector<Counted>& holders, const std::vector<PartCount>& counts,
                                  std::uint32_t to, bool evens_out, const Hash256& lot) {
  std::vector<std::uint32_t> from(counts.size());
  std::iota(from.begin(), from.end(), 0u);
  std::sort(from.begin(), from.end(), [&](std::uint32_t a, std::uint32_t b) {
    return std::tuple(counts[b].awake_rate(), counts[b].rate(), a) <
           std::tuple(counts[a].awake_rate(), counts[a].rate(), b);
  });
  for (const std::uint32_t part : from) {
    const auto reason = reason_to_move(counts[part], counts[to], evens_out);
    if (part == to || !reason) continue;
    const auto order = leavers(holders, part, counts, to, *reason, lot);
    if (order.empty()) continue;
    PartMove move{part, to, *reason, {}};
    for (const Counted* counted : order) move.order.push_back(counted->holder.node);
    return move;
  }
  return std::nullopt;
}

}  // namespace

std::vector<PartMove> plan_part_moves(const std::vector<ModelPart>& parts,
                                      const std::vector<PartHolder>& holders, const Hash256& lot) {
  std::vector<Counted> after = with_speeds(holders);
  const bool calm = std::none_of(holders.begin(), holders.end(), [](const PartHolder& holder) {
    return holder.state == HolderState::Arriving;
  });
  std::size_t evening = calm ? std::min(most_at_once, 1 + holders.size() / most_at_once) : 0;
  std::vector<PartMove> moves;
  while (moves.size() < holders.size()) {
    const std::vector<PartCount> counts = count_holders(parts, after);
    const auto to = neediest(counts, parts);
    std::optional<PartMove> move;
    if (to) move = next_move(after, counts, *to, evening > 0, lot);
    if (!move) return moves;
    const auto mover = std::find_if(after.begin(), after.end(), [&](const Counted& counted) {
      return counted.holder.node == move->order.front();
    });
    mover->holder.part = *to;
    mover->holder.state = HolderState::Arriving;
    evening = move->reason == MoveReason::SlowPart ? evening - 1 : 0;
    moves.push_back(std::move(*move));
  }
  return moves;
}

std::uint32_t choose_part(const std::vector<ModelPart>& parts, const std::vector<PartHolder>& holders,
                          const Hash256& node) {
  const auto count = static_cast<std::uint32_t>(parts.size());
  const std::vector<PartCount> counts = count_holders(parts, with_speeds(holders));
  std::optional<std::uint32_t> best;
  const auto place = [&](std::uint32_t part) {
    return std::tuple(supply(counts[part]), (part + count - node[0] % count) % count);
  };
  for (std::uint32_t part = 0; part < count; ++part) {
    if (parts[part].can_get && (!best || place(part) < place(*best))) best = part;
  }
  return best.value_or(node[0] % count);
}

}  // namespace neuroshard::plan
