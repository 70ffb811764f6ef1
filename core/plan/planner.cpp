#include "core/plan/planner.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "core/base/utf8.h"
#include "core/plan/detail/dealing.h"
#include "core/plan/detail/range_search.h"
#include "core/plan/detail/recreate_ranges.h"
#include "core/plan/schedule.h"

namespace neuroshard::plan {
namespace {

using detail::Problem;
using detail::RangeState;
using detail::Score;

constexpr double move_weights[] = {0.3, 0.1, 0.03};
constexpr double keeping_effort = 0.25;  // of each search that keeps present holders, beside a fresh plan's
constexpr double polish_below = 0.98;    // of the bound
// Some starts lead to poor plans; in smaller networks there is time for others.
constexpr std::uint32_t most_repeated = 200;
constexpr std::uint64_t most_starts = 2;
constexpr double short_search = 0.1;  // of the steps

// Ids may be those of a foreign file.
Error bad_peer(const PlanPeer& peer, const char* what, double value) {
  return make_error(ErrorCode::InvalidArgument,
                    fmt::format("peer '{}': {} is {}; it must be positive", one_line(peer.id), what, value));
}

Expected<void> check(const std::vector<PlanPeer>& peers) {
  const auto positive = [](double value) { return value > 0 && std::isfinite(value); };
  if (peers.size() > most_peers) {
    return make_error(ErrorCode::InvalidArgument,
                      fmt::format("{} peers; a plan places at most {}", peers.size(), most_peers));
  }
  for (std::size_t i = 0; i < peers.size(); ++i) {
    const PlanPeer& peer = peers[i];
    if (peer.id.empty()) return make_error(ErrorCode::InvalidArgument, "a peer has no id");
    if (i > 0 && peers[i - 1].id == peer.id)
      return make_error(ErrorCode::InvalidArgument,
                        fmt::format("two peers have the id '{}'", one_line(peer.id)));
    if (!positive(peer.speed)) return bad_peer(peer, "speed", peer.speed);
    if (!positive(peer.up)) return bad_peer(peer, "up", peer.up);
    if (!positive(peer.down)) return bad_peer(peer, "down", peer.down);
  }
  return {};
}

Problem make_problem(const Chain& chain, const std::vector<PlanPeer>& peers, const PlanOptions& options) {
  Problem problem{chain};
  problem.count = static_cast<std::uint32_t>(peers.size());
  std::map<std::string_view, std::uint32_t> owners;
  for (const PlanPeer& peer : peers) {
    problem.speed.push_back(peer.speed);
    problem.line.push_back(std::min(peer.up, peer.down));
    problem.memory.push_back(usable_bytes(peer, options.baseline_bytes));
    const auto next = static_cast<std::uint32_t>(owners.size());
    problem.owner.push_back(owners.try_emplace(peer.owner, next).first->second);
  }
  problem.owners = static_cast<std::uint32_t>(owners.size());
  problem.floor = std::min(problem.owners, least_replicas);
  problem.replicas = std::max(problem.floor, std::min(problem.owners, options.replicas));
  return problem;
}

std::vector<std::uint8_t> newcomers(const std::vector<UnitRange>& held) {
  std::vector<std::uint8_t> movable;
  for (const UnitRange range : held) movable.push_back(range.empty() ? 1 : 0);
  return movable;
}

class Planner {
 public:
  Planner(const PlanRequest& request, std::vector<PlanPeer> peers)
      : request_(request),
        chain_(*request.chain),
        peers_(std::move(peers)),
        problem_(make_problem(chain_, peers_, request.options)),
        bound_(throughput_bound(chain_, peers_, problem_.memory)),
        dealt_(peers_.size(), 0) {
    for (const PlanPeer& peer : peers_) ids_.push_back(peer.id);
    read_present();
  }

  Expected<Plan> run() {
    RangeState fresh = fresh_plan();
    bool kept = false;
    if (any_held_) kept = keep_present(fresh);
    if (const auto gap = first_gap(fresh); !gap.empty()) return refused(gap);
    std::vector<std::uint8_t> movable;
    if (kept) {
      movable = newcomers(held_);
    } else {
      std::fill(dealt_.begin(), dealt_.end(), std::uint8_t{0});
    }
    detail::deal(problem_, ids_, request_.beacon, request_.options.dealing_loss, movable, fresh, dealt_);
    return report(fresh);
  }

 private:
  void read_present() {
    held_.assign(peers_.size(), {});
    std::map<std::string_view, std::uint32_t> index;
    for (std::uint32_t peer = 0; peer < problem_.count; ++peer) index[peers_[peer].id] = peer;
    for (const Holding& holding : request_.present) {
      const auto found = index.find(holding.id);
      if (found == index.end() || holding.range.empty() || holding.range.end > chain_.size()) continue;
      if (!problem_.fits(found->second, holding.range)) continue;
      held_[found->second] = holding.range;
      dealt_[found->second] = holding.dealt ? 1 : 0;
      any_held_ = true;
    }
  }

  // In smaller networks the best of several starts after a short search.
  RangeState fresh_plan() const {
    const std::uint64_t starts = problem_.count <= most_repeated ? most_starts : 1;
    detail::SearchLimits limits;
    limits.effort = request_.options.effort * short_search;
    RangeState state(problem_);
    if (detail::all_ranges(problem_, state)) return state;
    Score score{std::numeric_limits<std::uint32_t>::max(), 0};
    for (std::uint64_t start = 1; start <= starts; ++start) {
      RangeState found = start == most_starts ? detail::place_ranges(problem_, bound_.throughput)
                                              : detail::recreate_ranges(problem_, bound_.throughput,
                                                                        request_.options.effort, start);
      if (starts > 1) found = detail::search_ranges(problem_, found, bound_.throughput, limits);
      const Score other = found.score();
      if (!other.better_than(score)) continue;
      score = other;
      state = std::move(found);
    }
    limits.effort = request_.options.effort;
    state = detail::search_ranges(problem_, state, bound_.throughput, limits);
    if (state.score().value() < bound_.throughput * polish_below) detail::polish_ranges(problem_, state);
    return state;
  }

  std::uint64_t moved_bytes(const RangeState& state) const {
    std::uint64_t sum = 0;
    for (std::uint32_t peer = 0; peer < problem_.count; ++peer) {
      if (!held_[peer].empty()) sum += fetch_bytes(peer, state.range(peer));
    }
    return sum;
  }

  std::uint64_t fetch_bytes(std::uint32_t peer, UnitRange range) const {
    return detail::fetched_bytes(chain_, held_[peer], range);
  }

  // Replaces `fresh` by a plan in which present holders stay or move little, where that one is good enough. Whether it
  // did.
  bool keep_present(RangeState& fresh) const {
    const Score wanted = fresh.score();
    detail::SearchLimits limits;
    limits.enough = wanted.value() / (1 + request_.options.hysteresis);
    const auto good = [&](const Score& score) {
      return score.missing <= wanted.missing && score.value() >= limits.enough;
    };
    limits.effort = keeping_effort * request_.options.effort;
    limits.movable = newcomers(held_);
    RangeState kept = detail::with_newcomers(problem_, held_, wanted.throughput);
    if (!good(kept.score())) kept = detail::search_ranges(problem_, kept, bound_.throughput, limits);
    if (good(kept.score())) {
      fresh = std::move(kept);
      return true;
    }
    limits.movable.clear();
    limits.held = held_;
    limits.budget = request_.options.migration_bytes;
    // Bytes weigh less and less, until the plan is good enough.
    for (const double weight : move_weights) {
      limits.bytes_weight = weight;
      kept = detail::search_ranges(problem_, kept, bound_.throughput, limits);
      if (good(kept.score())) break;
    }
    const Score score = kept.score();
    if (good(score)) detail::revert_needless(problem_, held_, limits.enough, kept);
    if (!good(score) && (moved_bytes(fresh) <= limits.budget || score.missing > wanted.missing)) return false;
    fresh = std::move(kept);
    return true;
  }

  UnitRange first_gap(const RangeState& state) const {
    UnitRange gap;
    for (std::uint32_t unit = 0; unit < chain_.size(); ++unit) {
      if (state.owners(unit) > 0) {
        if (!gap.empty()) break;
      } else if (gap.empty()) {
        gap = {unit, unit + 1};
      } else {
        gap.end = unit + 1;
      }
    }
    return gap;
  }

  Error refused(UnitRange gap) const {
    const std::uint64_t most =
        problem_.memory.empty() ? 0 : *std::max_element(problem_.memory.begin(), problem_.memory.end());
    for (std::uint32_t unit = 0; unit < chain_.size(); ++unit) {
      const std::uint64_t needed = chain_.memory({unit, unit + 1});
      if (needed <= most) continue;
      return make_error(
          ErrorCode::Exhausted,
          fmt::format("{} needs {} bytes on one node, and the largest node has {} for it: {} bytes are "
                      "missing there. Add a node with more memory, or train a smaller shape.",
                      chain_.unit(unit).name, needed, most, needed - most));
    }
    return make_error(
        ErrorCode::Exhausted,
        fmt::format("no node is left for {}: a node with {} bytes of free memory is missing. Add one, or "
                    "train a smaller shape.",
                    chain_.describe(gap), chain_.memory(gap)));
  }

  Plan report(const RangeState& state) const {
    Plan plan;
    const Schedule schedule = best_schedule(chain_, state.holders());
    plan.throughput = schedule.throughput;
    plan.bound = bound_;
    plan.bottleneck = schedule.bottleneck;
    plan.boundaries = boundaries(state);
    plan.least_owners = problem_.owners;
    for (std::uint32_t unit = 0; unit < chain_.size(); ++unit) {
      plan.least_owners = std::min(plan.least_owners, state.owners(unit));
      if (state.owners(unit) >= least_replicas) continue;
      if (!plan.short_ranges.empty() && plan.short_ranges.back().end == unit) {
        ++plan.short_ranges.back().end;
      } else {
        plan.short_ranges.push_back({unit, unit + 1});
      }
    }
    for (std::uint32_t peer = 0; peer < problem_.count; ++peer) {
      plan.peers.push_back(placed(state, schedule, peer));
      (held_[peer].empty() ? plan.joined_bytes : plan.moved_bytes) += plan.peers.back().fetch_bytes;
    }
    return plan;
  }

  PlacedPeer placed(const RangeState& state, const Schedule& schedule, std::uint32_t peer) const {
    PlacedPeer entry;
    entry.id = peers_[peer].id;
    entry.range = state.range(peer);
    if (entry.range.empty()) {
      entry.reason = Reason::TooSmall;
      return entry;
    }
    const double used = problem_.speed[peer] - schedule.idle[peer];
    entry.rate = schedule.peak[peer];
    entry.used_percent = 100 * used / problem_.speed[peer];
    entry.dealt = dealt_[peer] != 0;
    entry.memory_bytes = chain_.memory(entry.range);
    entry.fetch_bytes = fetch_bytes(peer, entry.range);
    if (held_[peer] == entry.range) {
      entry.reason = Reason::Kept;
    } else if (entry.dealt) {
      entry.reason = Reason::Dealt;
    } else {
      entry.reason = held_[peer].empty() ? Reason::Joined : Reason::Moved;
    }
    return entry;
  }

  std::vector<BoundaryLimit> boundaries(const RangeState& state) const {
    std::vector<BoundaryLimit> limits;
    for (const std::uint32_t cut : state.cuts()) {
      if (cut == 0 || cut == chain_.size()) continue;
      double before = 0, after = 0;
      for (std::uint32_t peer = 0; peer < problem_.count; ++peer) {
        const UnitRange range = state.range(peer);
        if (range.empty()) continue;
        const std::uint32_t crossings = std::max(1u, chain_.crossings(range));
        const double tokens = problem_.line[peer] / (crossings * chain_.boundary_bytes());
        if (range.holds(cut - 1)) before += tokens;
        if (range.holds(cut)) after += tokens;
      }
      limits.push_back({cut, std::min(before, after)});
    }
    return limits;
  }

  const PlanRequest& request_;
  const Chain& chain_;
  std::vector<PlanPeer> peers_;  // ascending ids
  std::vector<std::string> ids_;
  Problem problem_;
  Bound bound_;
  std::vector<UnitRange> held_;  // by present holders that still fit
  bool any_held_ = false;
  std::vector<std::uint8_t> dealt_;
};

}  // namespace

std::string_view to_string(Reason reason) {
  switch (reason) {
    case Reason::Kept: return "kept";
    case Reason::Joined: return "joined";
    case Reason::Moved: return "moved";
    case Reason::Dealt: return "dealt";
    case Reason::TooSmall: return "too small";
  }
  return "unknown";
}

Expected<Plan> make_plan(const PlanRequest& request) {
  std::vector<PlanPeer> peers = request.peers;
  std::sort(peers.begin(), peers.end(), [](const PlanPeer& a, const PlanPeer& b) { return a.id < b.id; });
  NS_RETURN_IF_ERROR(check(peers));
  if (peers.empty()) return make_error(ErrorCode::Exhausted, "there are no peers; a plan needs at least one");
  return Planner(request, std::move(peers)).run();
}

}  // namespace neuroshard::plan
