// Other planners, for comparison: the seed's greedy assignment, a split in proportion to memory (exo), and best
// response (Petals). Each is judged by shared_throughput where its holders may serve any part of what they hold.
#pragma once

#include <algorithm>
#include <limits>
#include <numeric>
#include <vector>

#include "core/plan/planner.h"

namespace neuroshard::plan::test {

// held[peer][unit]
using Holds = std::vector<std::vector<std::uint8_t>>;

// The largest rate if each holder divides its speed over its units as is best. Generous: a holder has its whole line for
// each run of neighbouring units that it holds.
class SharedThroughput {
 public:
  SharedThroughput(const Chain& chain, const std::vector<PlanPeer>& peers, const Holds& held)
      : chain_(chain),
        peers_(peers),
        held_(held),
        limit_(chain.size(), std::vector<double>(peers.size(), 0)) {
    for (std::size_t p = 0; p < peers.size(); ++p) limit_runs(p);
  }

  double value() {
    double low = 0, high = 0;
    for (const PlanPeer& peer : peers_) high += peer.speed / chain_.work(chain_.whole());
    for (int i = 0; i < 40; ++i) {
      const double middle = (low + high) / 2;
      (serves(middle) ? low : high) = middle;
    }
    return low;
  }

 private:
  // Work λ·w of each unit is assigned to holders by augmenting paths of fractional work.
  bool serves(double rate) {
    const std::size_t n = peers_.size(), size = chain_.size();
    std::vector<double> room(n);
    for (std::size_t p = 0; p < n; ++p) room[p] = peers_[p].speed;
    std::vector<std::vector<double>> done(size, std::vector<double>(n, 0));
    for (std::uint32_t unit = 0; unit < size; ++unit) {
      double need = rate * chain_.work({unit, unit + 1});
      const double small = need * 1e-9;
      const auto line_left = [&](std::size_t u, std::size_t p) { return limit_[u][p] - done[u][p]; };
      while (need > small) {
        // Breadth first from the unit: to its holders, and from a holder without room to other units that it serves.
        std::vector<int> from_peer(n, -1), from_unit(size, -1);
        std::vector<std::uint32_t> queue{unit};
        int end = -1;
        for (std::size_t next = 0; next < queue.size() && end < 0; ++next) {
          const std::uint32_t u = queue[next];
          for (std::size_t p = 0; p < n && end < 0; ++p) {
            if (held_[p][u] == 0 || from_peer[p] >= 0 || line_left(u, p) <= peers_[p].speed * 1e-9) continue;
            from_peer[p] = static_cast<int>(u);
            if (room[p] > peers_[p].speed * 1e-9) {
              end = static_cast<int>(p);
              break;
            }
            for (std::uint32_t v = 0; v < size; ++v) {
              if (v == unit || from_unit[v] >= 0 || done[v][p] <= peers_[p].speed * 1e-9) continue;
              from_unit[v] = static_cast<int>(p);
              queue.push_back(v);
            }
          }
        }
        if (end < 0) return false;
        double step = std::min(need, room[static_cast<std::size_t>(end)]);
        for (int p = end;;) {
          const int u = from_peer[static_cast<std::size_t>(p)];
          step = std::min(step, line_left(static_cast<std::size_t>(u), static_cast<std::size_t>(p)));
          if (u == static_cast<int>(unit)) break;
          const int q = from_unit[static_cast<std::size_t>(u)];
          step = std::min(step, done[static_cast<std::size_t>(u)][static_cast<std::size_t>(q)]);
          p = q;
        }
        room[static_cast<std::size_t>(end)] -= step;
        for (int p = end;;) {
          const int u = from_peer[static_cast<std::size_t>(p)];
          done[static_cast<std::size_t>(u)][static_cast<std::size_t>(p)] += step;
          if (u == static_cast<int>(unit)) break;
          const int q = from_unit[static_cast<std::size_t>(u)];
          done[static_cast<std::size_t>(u)][static_cast<std::size_t>(q)] -= step;
          p = q;
        }
        need -= step;
      }
    }
    return true;
  }

  // FLOP/s of each unit that the peer's line allows.
  void limit_runs(std::size_t p) {
    for (std::uint32_t first = 0; first < chain_.size();) {
      UnitRange run{first, first};
      while (run.end < chain_.size() && held_[p][run.end] != 0) ++run.end;
      const double crossed = chain_.crossings(run) * chain_.boundary_bytes();
      for (std::uint32_t unit = run.first; unit < run.end; ++unit)
        limit_[unit][p] =
            crossed > 0 ? std::min(peers_[p].up, peers_[p].down) / crossed * chain_.work({unit, unit + 1})
                        : std::numeric_limits<double>::infinity();
      first = run.end + 1;
    }
  }

  const Chain& chain_;
  const std::vector<PlanPeer>& peers_;
  const Holds& held_;
  std::vector<std::vector<double>> limit_;  // [unit][peer]
};

inline double shared_throughput(const Chain& chain, const std::vector<PlanPeer>& peers, const Holds& held) {
  return SharedThroughput(chain, peers, held).value();
}

inline std::uint64_t free_bytes(const PlanPeer& peer) {
  const std::uint64_t counted = counted_bytes(peer.memory), baseline = PlanOptions().baseline_bytes;
  return counted > baseline ? counted - baseline : 0;
}

// The seed: the largest memory first, each takes as many units as fit, always one of those with fewest holders, until
// every unit has five.
inline Holds greedy_holds(const Chain& chain, const std::vector<PlanPeer>& peers) {
  constexpr std::uint32_t most_replicas = 5;
  std::uint64_t unit_bytes = 0;
  for (std::uint32_t unit = 0; unit < chain.size(); ++unit)
    unit_bytes = std::max(unit_bytes, chain.memory({unit, unit + 1}));
  std::vector<std::size_t> order(peers.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return peers[a].memory > peers[b].memory; });
  Holds held(peers.size(), std::vector<std::uint8_t>(chain.size(), 0));
  std::vector<std::uint32_t> replicas(chain.size(), 0);
  for (const std::size_t peer : order) {
    for (std::uint64_t i = 0; i < free_bytes(peers[peer]) / unit_bytes; ++i) {
      std::uint32_t best = chain.size();
      for (std::uint32_t unit = 0; unit < chain.size(); ++unit) {
        if (held[peer][unit] == 0 && (best == chain.size() || replicas[unit] < replicas[best])) best = unit;
      }
      if (best == chain.size() || replicas[best] >= most_replicas) break;
      held[peer][best] = 1;
      ++replicas[best];
    }
  }
  return held;
}

// exo: peers by memory, in pipelines that hold the chain, each with a share of the units in proportion to its memory.
inline double proportional_throughput(const Chain& chain, const std::vector<PlanPeer>& peers) {
  std::vector<std::size_t> order(peers.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return peers[a].memory > peers[b].memory; });
  double sum = 0;
  for (std::size_t start = 0; start < order.size();) {
    // The fewest next peers of which each can hold its share.
    std::size_t end = start;
    std::vector<double> pipeline;
    while (end < order.size() && pipeline.empty() && end - start < chain.size()) {
      ++end;
      double total = 0, before = 0;
      for (std::size_t i = start; i < end; ++i) total += static_cast<double>(free_bytes(peers[order[i]]));
      for (std::size_t i = start; i < end; ++i) {
        const PlanPeer& peer = peers[order[i]];
        UnitRange range;
        range.first = static_cast<std::uint32_t>(std::lround(before / total * chain.size()));
        before += static_cast<double>(free_bytes(peer));
        range.end = static_cast<std::uint32_t>(std::lround(before / total * chain.size()));
        if (range.empty()) continue;
        if (chain.memory(range) > free_bytes(peer)) {
          pipeline.clear();
          break;
        }
        double rate = peer.speed / chain.work(range);
        if (const std::uint32_t crossings = chain.crossings(range); crossings > 0)
          rate = std::min(rate, std::min(peer.up, peer.down) / (crossings * chain.boundary_bytes()));
        pipeline.push_back(rate);
      }
    }
    if (pipeline.empty()) break;
    sum += *std::min_element(pipeline.begin(), pipeline.end());
    start = end;
  }
  return sum;
}

// Petals: peers arrive one by one; each takes the window, as long as its memory allows, whose units are served least.
// Then all choose again, a few times.
inline Holds best_response_holds(const Chain& chain, const std::vector<PlanPeer>& peers) {
  const std::uint32_t size = chain.size();
  std::vector<double> served(size, 0);
  std::vector<UnitRange> ranges(peers.size());
  const auto add = [&](std::size_t p, double sign) {
    for (std::uint32_t unit = ranges[p].first; unit < ranges[p].end; ++unit)
      served[unit] += sign * peers[p].speed / chain.work(ranges[p]);
  };
  for (int round = 0; round < 4; ++round) {
    for (std::size_t p = 0; p < peers.size(); ++p) {
      add(p, -1);
      UnitRange best;
      std::vector<double> best_served;
      for (std::uint32_t first = 0; first < size; ++first) {
        std::uint32_t end = first;
        while (end < size && chain.memory({first, end + 1}) <= free_bytes(peers[p])) ++end;
        const UnitRange range{first, end};
        if (range.empty() || (!best.empty() && range.end - range.first < best.end - best.first)) continue;
        std::vector<double> window(served.begin() + first, served.begin() + end);
        std::sort(window.begin(), window.end());
        const bool longer = range.end - range.first > best.end - best.first;
        if (best.empty() || longer || window < best_served) {
          best = range;
          best_served = window;
        }
      }
      ranges[p] = best;
      add(p, 1);
    }
  }
  Holds held(peers.size(), std::vector<std::uint8_t>(size, 0));
  for (std::size_t p = 0; p < peers.size(); ++p) {
    for (std::uint32_t unit = ranges[p].first; unit < ranges[p].end; ++unit) held[p][unit] = 1;
  }
  return held;
}

}  // namespace neuroshard::plan::test
