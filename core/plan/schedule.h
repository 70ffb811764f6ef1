// The throughput of given ranges, with a schedule that reaches it.
//
// A schedule says how many tokens/s each holder passes through each unit of its range. A session has one holder per
// slot, so its tokens may pass a part of a range. The rules:
//   1. the rates of a unit's holders sum up to the throughput;
//   2. a holder's rates times the work of the units are at most its speed;
//   3. where a holder's rate changes from one unit to the next, the difference crosses the boundary there, forward as
//      activations and backward as gradients; all crossings times the boundary's bytes are at most its line. At the ends
//      of the model nothing crosses. Holders pass as many tokens on to themselves as they can.
// Without lines, serving each unit by the holders whose range ends first finds the largest throughput: the problem is a
// matching in a convex bipartite graph (Glover 1967). With lines, each rate has a limit that the line carries through the
// whole range. Holders whose speed exceeds it serve first, so that their rate is level. Next comes what a holder's line
// would not let it serve in later units. A holder whose crossings still exceed its line gets a lower limit, then is made
// level at the lower of this limit and the rate that its speed allows for the whole range. Ranges at the ends of the model cross fewer boundaries if
// their rate only falls from the start, or only rises to the end; other orders prefer that. Each schedule is checked against
// rule 3, so the throughput is reached, never overstated; with lines it need not be the largest.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "core/plan/chain.h"

namespace neuroshard::plan {

struct Holder {
  UnitRange range;   // may be empty
  double speed = 0;  // FLOP/s
  double line = 0;   // bytes/s each way
};

struct Schedule {
  double throughput = 0;         // tokens/s
  std::vector<double> peak;      // of each holder: tokens/s through the unit that it serves most
  std::vector<double> idle;      // of each holder: FLOP/s that it does not use
  std::uint32_t bottleneck = 0;  // where a larger throughput would end first
};
Schedule best_schedule(const Chain& chain, const std::vector<Holder>& holders);

// Tries schedules one after another, with the same buffers.
class Scheduler {
 public:
  explicit Scheduler(const Chain& chain);

  // Work that the units lack at `rate` tokens/s, as a part of all work; a guide for a search. Lines are kept in most
  // cases. unmet() and idle() are of this pass.
  double shortfall(const std::vector<Holder>& holders, double rate);
  const std::vector<double>& unmet() const { return unmet_; }  // FLOP/s of each unit
  const std::vector<double>& idle() const { return room_; }    // FLOP/s of each holder
  const std::vector<double>& peak() const { return peak_; }    // tokens/s of each holder
  // Whether all lines are kept, too; lowers limits a few times.
  bool serves(const std::vector<Holder>& holders, double rate);
  Schedule best(const std::vector<Holder>& holders);  // as best_schedule()
  std::uint64_t passes() const { return passes_; }    // over all holders so far
  // The largest rate that is served, between one that is and one that need not be.
  double largest_rate(const std::vector<Holder>& holders, double served, double above);

 private:
  void order(const std::vector<Holder>& holders);
  void set_limits(const std::vector<Holder>& holders);
  void reset(const std::vector<Holder>& holders);
  void close_crossings();
  void level(const std::vector<Holder>& holders, double slack);
  bool keep_lines(const std::vector<Holder>& holders);
  double pass(const std::vector<Holder>& holders, double rate);
  void serve_unit(const std::vector<Holder>& holders, std::uint32_t unit, double& need, double small);
  void give(std::size_t place, double work, double most, double& need);
  void use(std::uint32_t holder, std::uint32_t unit, double rate);

  const Chain& chain_;
  std::vector<std::uint32_t> starts_;    // of each unit, in by_first_; one more at the end
  std::vector<std::uint32_t> by_end_;    // scratch
  std::vector<std::uint32_t> by_first_;  // holders by first unit, then by end, then by index
  std::vector<std::uint32_t> active_, merged_;
  std::vector<double> limit_;         // tokens/s of each holder
  std::vector<std::uint8_t> level_;   // above 0: serves before others, at its limit
  std::array<bool, 3> has_level_{};   // of any holder
  std::vector<std::uint8_t> scaled_;  // its limit was lowered once
  std::uint64_t passes_ = 0;
  bool ends_keep_ = false;     // a holder up to the end of the model keeps its rate
  bool starts_first_ = false;  // one from its start that exceeds its line serves first
  std::vector<double> given_;  // FLOP/s in the unit, of active_
  std::vector<double> room_, unmet_, peak_;
  std::vector<double> last_rate_, crossing_;
  std::vector<std::uint32_t> last_unit_;
};

}  // namespace neuroshard::plan
