#include "core/plan/bound.h"

#include <algorithm>
#include <array>
#include <limits>
#include <map>

namespace neuroshard::plan {
namespace {

constexpr int bisections = 60;
// The sums are rounded; the bound is larger than the exact one, not smaller.
constexpr double rounding = 1 + 1e-9;

// The most work in the segment of a range that fits, by the range's crossings: 0, 1 or 2. Negative: none fits.
using BestWork = std::array<double, 3>;

double shared_work(const Chain& chain, UnitRange range, UnitRange segment) {
  const UnitRange shared{std::max(range.first, segment.first), std::min(range.end, segment.end)};
  return shared.empty() ? 0 : chain.work(shared);
}

BestWork best_work(const Chain& chain, std::uint64_t memory, UnitRange segment) {
  BestWork best{-1, -1, -1};
  for (std::uint32_t first = 0; first < chain.size(); ++first) {
    for (std::uint32_t end = chain.size(); end > first; --end) {
      const UnitRange range{first, end};
      if (chain.memory(range) > memory) continue;
      double& entry = best[chain.crossings(range)];
      entry = std::max(entry, shared_work(chain, range, segment));
      // Shorter ranges of this start have less work; only one that does not end the chain may have other crossings.
      if (end < chain.size()) break;
    }
  }
  return best;
}

struct Supply {
  double speed = 0;
  double line = 0;  // tokens/s at one crossing
  BestWork work{};
};

double work_at(const std::vector<Supply>& supplies, double rate) {
  double sum = 0;
  for (const Supply& supply : supplies) {
    double best = 0;
    for (std::size_t crossings = 0; crossings < supply.work.size(); ++crossings) {
      const double work = supply.work[crossings];
      if (work <= 0) continue;
      double most = std::min(supply.speed, rate * work);
      if (crossings > 0) most = std::min(most, work * supply.line / static_cast<double>(crossings));
      best = std::max(best, most);
    }
    sum += best;
  }
  return sum;
}

class BoundSearch {
 public:
  BoundSearch(const Chain& chain, const std::vector<PlanPeer>& peers,
              const std::vector<std::uint64_t>& usable)
      : chain_(chain) {
    for (std::size_t i = 0; i < peers.size(); ++i) {
      const double line = std::min(peers[i].up, peers[i].down) / chain.boundary_bytes();
      supplies_.push_back({peers[i].speed, line, {}});
      kind_.push_back(kinds_.try_emplace(usable[i], kinds_.size()).first->second);
      total_ += peers[i].speed;
    }
    result_.segment = chain.whole();
    result_.throughput = rounding * total_ / chain.work(chain.whole());
  }

  void consider(UnitRange segment) {
    std::vector<BestWork> works(kinds_.size());
    for (const auto& [memory, kind] : kinds_) works[kind] = best_work(chain_, memory, segment);
    for (std::size_t i = 0; i < supplies_.size(); ++i) supplies_[i].work = works[kind_[i]];
    const double work = chain_.work(segment);
    const auto allows = [&](double rate) { return work_at(supplies_, rate) * rounding >= rate * work; };
    if (allows(result_.throughput)) return;
    double low = 0, high = result_.throughput;
    for (int i = 0; i < bisections; ++i) {
      const double middle = low + (high - low) / 2;
      (allows(middle) ? low : high) = middle;
    }
    result_ = {high, segment};
  }

  const Bound& result() const { return result_; }

 private:
  const Chain& chain_;
  std::vector<Supply> supplies_;
  std::map<std::uint64_t, std::size_t> kinds_;  // of usable memory
  std::vector<std::size_t> kind_;               // of each peer
  double total_ = 0;
  Bound result_;
};

}  // namespace

Bound throughput_bound(const Chain& chain, const std::vector<PlanPeer>& peers,
                       const std::vector<std::uint64_t>& usable) {
  BoundSearch search(chain, peers, usable);
  const std::uint32_t size = chain.size();
  search.consider(chain.whole());
  for (std::uint32_t unit = 0; unit < size; ++unit) search.consider({unit, unit + 1});
  for (std::uint32_t unit = 1; unit < size; ++unit) {
    search.consider({0, unit});
    search.consider({unit, size});
  }
  for (std::uint32_t left_out = 1; 2 * left_out < size; ++left_out)
    search.consider({left_out, size - left_out});
  return search.result();
}

}  // namespace neuroshard::plan
