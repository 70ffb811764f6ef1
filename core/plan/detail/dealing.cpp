#include "core/plan/detail/dealing.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "core/crypto/hash.h"

namespace neuroshard::plan::detail {
namespace {

constexpr std::size_t most_ranks = 6;
constexpr std::size_t most_partners = 6;

class Dealing {
 public:
  Dealing(const Problem& problem, const std::vector<std::string>& ids, const Hash256& beacon, double least,
          const std::vector<std::uint8_t>& movable, RangeState& state, std::vector<std::uint8_t>& dealt)
      : problem_(problem),
        ids_(ids),
        beacon_(beacon),
        least_(least),
        movable_(movable),
        state_(state),
        dealt_(dealt),
        scheduler_(problem.chain) {}

  void deal_unit(std::uint32_t unit) {
    if (is_dealt(unit)) return;
    const std::vector<std::uint32_t> ranked = rank(unit);
    for (std::size_t i = 0; i < std::min(ranked.size(), most_ranks); ++i) {
      const std::uint32_t peer = ranked[i];
      if (state_.range(peer).holds(unit) || take_over(peer, unit)) {
        dealt_[peer] = 1;
        return;
      }
    }
    take_best(ranked, unit);
  }

  // Without an exchange.
  void deal_holder(std::uint32_t unit) {
    if (!is_dealt(unit)) take_best(rank(unit), unit);
  }

 private:
  bool is_dealt(std::uint32_t unit) const {
    for (std::uint32_t peer = 0; peer < problem_.count; ++peer)
      if (dealt_[peer] != 0 && state_.range(peer).holds(unit)) return true;
    return false;
  }

  // The holder of the unit that ranks first.
  void take_best(const std::vector<std::uint32_t>& ranked, std::uint32_t unit) {
    const auto best = std::find_if(ranked.begin(), ranked.end(),
                                   [&](std::uint32_t peer) { return state_.range(peer).holds(unit); });
    if (best != ranked.end()) dealt_[*best] = 1;
  }

  // Peers that fit the unit alone, the lowest hash first.
  std::vector<std::uint32_t> rank(std::uint32_t unit) const {
    std::vector<std::pair<Hash256, std::uint32_t>> hashes;
    for (std::uint32_t peer = 0; peer < problem_.count; ++peer) {
      if (!problem_.fits(peer, {unit, unit + 1})) continue;
      const std::array<std::uint8_t, 4> number{static_cast<std::uint8_t>(unit),
                                               static_cast<std::uint8_t>(unit >> 8), 0, 0};
      crypto::Sha256 hash;
      hash.update("neuroshard dealt holder 1\n").update(beacon_).update(number).update(ids_[peer]);
      hashes.emplace_back(hash.finish(), peer);
    }
    std::sort(hashes.begin(), hashes.end());
    std::vector<std::uint32_t> ranked;
    for (const auto& [hash, peer] : hashes) ranked.push_back(peer);
    return ranked;
  }

  // The holders of the unit whose range fits the peer and whose own range then fits them, the most similar rate first.
  std::vector<std::uint32_t> partners(std::uint32_t peer, std::uint32_t unit) const {
    std::vector<std::pair<double, std::uint32_t>> found;
    const UnitRange own = state_.range(peer);
    for (std::uint32_t other = 0; other < problem_.count; ++other) {
      const UnitRange range = state_.range(other);
      if (!range.holds(unit) || dealt_[other] != 0 || !movable(other) || !problem_.fits(peer, range))
        continue;
      if (!own.empty() && !problem_.fits(other, own)) continue;
      found.emplace_back(std::abs(problem_.speed[other] - problem_.speed[peer]), other);
    }
    std::sort(found.begin(), found.end());
    std::vector<std::uint32_t> result;
    for (std::size_t i = 0; i < std::min(found.size(), most_partners); ++i) result.push_back(found[i].second);
    return result;
  }

  bool movable(std::uint32_t peer) const { return movable_.empty() || movable_[peer] != 0; }

  bool take_over(std::uint32_t peer, std::uint32_t unit) {
    if (dealt_[peer] != 0 || !movable(peer)) return false;
    const std::uint32_t missing = state_.missing();
    const double thin = state_.thin();
    const UnitRange own = state_.range(peer);
    for (const std::uint32_t other : partners(peer, unit)) {
      const UnitRange range = state_.range(other);
      state_.set(peer, range);
      state_.set(other, own);
      if (state_.missing() <= missing && state_.thin() <= thin && scheduler_.serves(state_.holders(), least_))
        return true;
      state_.set(peer, own);
      state_.set(other, range);
    }
    return false;
  }

  const Problem& problem_;
  const std::vector<std::string>& ids_;
  const Hash256& beacon_;
  double least_;
  const std::vector<std::uint8_t>& movable_;
  RangeState& state_;
  std::vector<std::uint8_t>& dealt_;
  Scheduler scheduler_;
};

}  // namespace

void deal(const Problem& problem, const std::vector<std::string>& ids, const Hash256& beacon, double loss,
          const std::vector<std::uint8_t>& movable, RangeState& state, std::vector<std::uint8_t>& dealt) {
  const std::vector<std::uint32_t> cuts = state.cuts();
  Dealing dealing(problem, ids, beacon, state.score().throughput * (1 - loss), movable, state, dealt);
  for (std::size_t i = 0; i + 1 < cuts.size(); ++i) dealing.deal_unit(cuts[i]);
  // Exchanges may have moved a dealt holder away from units that had no other.
  for (std::uint32_t unit = 0; unit < problem.chain.size(); ++unit) dealing.deal_holder(unit);
}

}  // namespace neuroshard::plan::detail
