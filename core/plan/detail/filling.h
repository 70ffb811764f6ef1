// Ranges with the rates at which their holders serve the units, changed one peer at a time.
//
// The cost is Σ work · max(0, target − served)² over the units, `served` in tokens/s, and a weight for owners that are
// missing or few. A peer fills a window from the unit that lacks most: it leaves the same lack in all units that it serves,
// as far as its line allows. Where the line does not carry such rates, they are the same in the whole window.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "core/plan/detail/problem.h"

namespace neuroshard::plan::detail {

class Filling {
 public:
  explicit Filling(const Problem& problem);  // all ranges are empty

  // tokens/s. Rates stay as they are until a peer is placed or refilled.
  void set_target(double target) { target_ = target; }
  double target() const { return target_; }
  // The peer's windows that are part of no other; none if it fits no unit.
  const std::vector<UnitRange>& windows(std::uint32_t peer) const { return *windows_of_[peer]; }
  UnitRange range(std::uint32_t peer) const { return ranges_[peer]; }
  const std::vector<UnitRange>& ranges() const { return ranges_; }
  // tokens/s in the units of its range.
  const std::vector<double>& rates(std::uint32_t peer) const { return rates_[peer]; }
  double served(std::uint32_t unit) const { return served_[unit]; }
  double least_served() const;
  bool lacks_owners(std::uint32_t unit) const { return distinct_[unit] < problem_.floor; }
  std::uint32_t missing() const;                    // as in Score
  double idle(std::uint32_t peer) const;            // FLOP/s that it does not use
  double cost() const;                              // less is better
  std::uint64_t filled() const { return filled_; }  // units over which windows were filled so far

  // A peer without a range takes the window in which it lowers the cost most.
  void place(std::uint32_t peer);
  void drop(std::uint32_t peer);
  // Divides the peer's speed over its range again.
  void refill(std::uint32_t peer);
  // A peer without a range gets one. rates: of each unit of it, or empty.
  void restore(std::uint32_t peer, UnitRange range, std::vector<double> rates);

 private:
  double work(std::uint32_t unit) const { return chain_.work({unit, unit + 1}); }
  double lack(std::uint32_t unit) const { return std::max(0.0, target_ - served_[unit]); }
  std::uint32_t& owned(std::uint32_t unit, std::uint32_t peer) {
    return owned_[std::size_t{unit} * problem_.owners + problem_.owner[peer]];
  }
  double owner_weight() const;
  double misses(std::uint32_t owners) const;
  std::vector<UnitRange> longest_windows(std::uint32_t peer) const;
  void count(std::uint32_t peer, bool add);
  void serve(std::uint32_t peer, double sign);
  double level(std::uint32_t peer, UnitRange window, double most) const;
  double crossing(UnitRange window) const;
  double fill(std::uint32_t peer, UnitRange window);

  const Problem& problem_;
  const Chain& chain_;
  double target_ = 0;
  std::uint64_t filled_ = 0;
  std::vector<double> served_;                               // tokens/s of each unit
  std::vector<std::uint32_t> owned_;                         // [unit][owner]: ranges
  std::vector<std::uint32_t> distinct_;                      // owners of each unit
  std::vector<UnitRange> ranges_;                            // of each peer
  std::vector<std::vector<double>> rates_;                   // of each peer
  std::vector<double> filling_;                              // rates that the last fill() found
  std::map<std::uint64_t, std::vector<UnitRange>> windows_;  // by memory
  std::vector<const std::vector<UnitRange>*> windows_of_;
};

}  // namespace neuroshard::plan::detail
