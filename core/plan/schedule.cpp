#include "core/plan/schedule.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace neuroshard::plan {
namespace {

constexpr std::uint32_t no_unit = std::numeric_limits<std::uint32_t>::max();
constexpr double infinite = std::numeric_limits<double>::infinity();
// Less than this part is rounding.
constexpr double negligible = 1e-11;
constexpr int line_passes = 6;
constexpr int guide_passes = 3;
// Tried one after another: none of these orders serves the largest rate for all ranges.
constexpr struct {
  bool ends_keep, starts_first;
  double slack;  // of level()
} attempts[] = {{false, false, 0}, {true, true, 0},   {false, true, 0},        {true, false, 0},
                {false, false, 1}, {false, false, 3}, {false, false, infinite}};
constexpr int bisections = 40;
constexpr double precise = 1e-7;
constexpr double start_step = 0.985;

}  // namespace

Scheduler::Scheduler(const Chain& chain) : chain_(chain) {}

// Two counting sorts, both stable.
void Scheduler::order(const std::vector<Holder>& holders) {
  const std::uint32_t size = chain_.size();
  starts_.assign(size + 2, 0);
  std::size_t used = 0;
  for (const Holder& holder : holders) {
    if (holder.range.empty()) continue;
    ++starts_[holder.range.end + 1];
    ++used;
  }
  for (std::uint32_t unit = 1; unit < size + 2; ++unit) starts_[unit] += starts_[unit - 1];
  by_end_.resize(used);
  by_first_.resize(used);
  for (std::uint32_t i = 0; i < holders.size(); ++i) {
    if (!holders[i].range.empty()) by_end_[starts_[holders[i].range.end]++] = i;
  }
  starts_.assign(size + 2, 0);
  for (const std::uint32_t i : by_end_) ++starts_[holders[i].range.first + 1];
  for (std::uint32_t unit = 1; unit < size + 2; ++unit) starts_[unit] += starts_[unit - 1];
  std::vector<std::uint32_t>& next = merged_;
  next.assign(starts_.begin(), starts_.end());
  for (const std::uint32_t i : by_end_) by_first_[next[holders[i].range.first]++] = i;
}

void Scheduler::set_limits(const std::vector<Holder>& holders) {
  limit_.assign(holders.size(), infinite);
  level_.assign(holders.size(), 0);
  scaled_.assign(holders.size(), 0);
  for (std::size_t i = 0; i < holders.size(); ++i) {
    if (holders[i].range.empty()) continue;
    const std::uint32_t crossings = chain_.crossings(holders[i].range);
    if (crossings == 0) continue;
    limit_[i] = holders[i].line / (crossings * chain_.boundary_bytes());
    // Its speed never ends before its line: it serves every unit at its limit, before others.
    if (limit_[i] * chain_.work(holders[i].range) <= holders[i].speed) level_[i] = 1;
  }
}

// The holder passes `rate` tokens/s through the unit: counts what crosses the unit's first boundary.
void Scheduler::use(std::uint32_t holder, std::uint32_t unit, double rate) {
  double before = 0;
  if (last_unit_[holder] != no_unit) {
    if (last_unit_[holder] + 1 == unit) {
      before = last_rate_[holder];
    } else {
      crossing_[holder] += last_rate_[holder];
    }
  }
  if (unit > 0) crossing_[holder] += std::abs(rate - before);
  last_unit_[holder] = unit;
  last_rate_[holder] = rate;
  peak_[holder] = std::max(peak_[holder], rate);
}

// Tokens leave a holder after the last unit that it served, unless the model ends there.
void Scheduler::close_crossings() {
  for (std::size_t i = 0; i < last_unit_.size(); ++i) {
    if (last_unit_[i] != no_unit && last_unit_[i] + 1 != chain_.size()) crossing_[i] += last_rate_[i];
  }
}

void Scheduler::reset(const std::vector<Holder>& holders) {
  room_.resize(holders.size());
  for (std::size_t i = 0; i < holders.size(); ++i) room_[i] = holders[i].range.empty() ? 0 : holders[i].speed;
  peak_.assign(holders.size(), 0);
  crossing_.assign(holders.size(), 0);
  last_rate_.assign(holders.size(), 0);
  last_unit_.assign(holders.size(), no_unit);
  unmet_.assign(chain_.size(), 0);
}

// A part of what the unit still needs, at most `most` FLOP/s, to the holder at this place of active_.
void Scheduler::give(std::size_t place, double work, double most, double& need) {
  const std::uint32_t i = active_[place];
  const double more = std::min({room_[i] - given_[place], limit_[i] * work - given_[place], most, need});
  if (more <= 0) return;
  given_[place] += more;
  need -= more;
}

// Serves the unit by holders whose change of rate costs most, then by those whose line limits them most, then by those
// whose range ends first.
void Scheduler::serve_unit(const std::vector<Holder>& holders, std::uint32_t unit, double& need,
                           double small) {
  const std::uint32_t size = chain_.size();
  const double work = chain_.work({unit, unit + 1});
  const auto each = [&](auto&& most) {
    for (std::size_t place = 0; place < active_.size() && need > small; ++place)
      give(place, work, most(active_[place]), need);
  };
  given_.assign(active_.size(), 0);
  // To the end of the model, a rate that falls crosses a boundary that a level one does not.
  if (ends_keep_)
    each([&](std::uint32_t i) {
      const bool passes =
          holders[i].range.end == size && last_unit_[i] != no_unit && last_unit_[i] + 1 == unit;
      return passes ? last_rate_[i] * work : 0;
    });
  for (const std::uint8_t priority : {2, 1})
    if (has_level_[priority]) each([&](std::uint32_t i) { return level_[i] == priority ? infinite : 0; });
  // Then the work that a holder's line does not let it do later.
  each([&](std::uint32_t i) {
    if (level_[i] != 0) return 0.0;
    const double later = chain_.work({unit + 1, holders[i].range.end});
    return later > 0 ? room_[i] - limit_[i] * later : room_[i];
  });
  each([&](std::uint32_t i) { return level_[i] == 0 ? infinite : 0; });
}

double Scheduler::pass(const std::vector<Holder>& holders, double rate) {
  const std::uint32_t size = chain_.size();
  ++passes_;
  has_level_ = {};
  for (const std::uint8_t level : level_) has_level_[level] = true;
  reset(holders);
  active_.clear();
  double total = 0;
  for (std::uint32_t unit = 0; unit < size; ++unit) {
    const auto begin = by_first_.begin() + starts_[unit], end = by_first_.begin() + starts_[unit + 1];
    merged_.resize(active_.size() + static_cast<std::size_t>(end - begin));
    std::merge(active_.begin(), active_.end(), begin, end, merged_.begin(),
               [&](std::uint32_t a, std::uint32_t b) {
                 if (holders[a].range.end != holders[b].range.end)
                   return holders[a].range.end < holders[b].range.end;
                 return a < b;
               });
    active_.swap(merged_);
    const double work = chain_.work({unit, unit + 1});
    double need = rate * work;
    const double small = need * negligible;
    serve_unit(holders, unit, need, small);
    std::size_t kept = 0;
    for (std::size_t place = 0; place < active_.size(); ++place) {
      const std::uint32_t i = active_[place];
      if (given_[place] > 0) use(i, unit, given_[place] / work);
      room_[i] -= given_[place];
      if (holders[i].range.end > unit + 1 && room_[i] > holders[i].speed * negligible) active_[kept++] = i;
    }
    active_.resize(kept);
    if (need > small) {
      unmet_[unit] = need;
      total += need;
    }
  }
  close_crossings();
  return total / (rate * chain_.work(chain_.whole()));
}

// Lowers the limits of holders whose line does not carry the last pass. Whether all lines are kept.
bool Scheduler::keep_lines(const std::vector<Holder>& holders) {
  bool kept = true;
  for (std::size_t h = 0; h < holders.size(); ++h) {
    const double carried = crossing_[h] * chain_.boundary_bytes();
    if (carried <= holders[h].line * (1 + 1e-9)) continue;
    kept = false;
    if (starts_first_ && holders[h].range.first == 0 && level_[h] < 2) {
      level_[h] = 2;  // from the start of the model, a rate that rises crosses more than one that falls
    } else if (level_[h] == 0 && !scaled_[h]) {
      scaled_[h] = 1;
      limit_[h] = std::min(limit_[h], peak_[h]) * holders[h].line / carried;
    } else if (level_[h] == 0) {
      level_[h] = 1;
      limit_[h] = std::min(limit_[h], holders[h].speed / chain_.work(holders[h].range));
    } else {
      limit_[h] = std::min(limit_[h], peak_[h]) * holders[h].line / carried;
    }
  }
  return kept;
}

double Scheduler::shortfall(const std::vector<Holder>& holders, double rate) {
  order(holders);
  ends_keep_ = starts_first_ = false;
  set_limits(holders);
  double shortfall = pass(holders, rate);
  for (int i = 1; i < guide_passes && !keep_lines(holders); ++i) shortfall = pass(holders, rate);
  return shortfall;
}

// Holders whose line carries less than `slack` times what they send at a level rate become level.
void Scheduler::level(const std::vector<Holder>& holders, double slack) {
  for (std::size_t h = 0; h < holders.size(); ++h) {
    if (holders[h].range.empty()) continue;
    const double rate = holders[h].speed / chain_.work(holders[h].range);
    if (holders[h].line > slack * rate * chain_.boundary_bytes()) continue;
    // A holder of the whole chain sends nothing while its rate is level.
    level_[h] = chain_.crossings(holders[h].range) == 0 ? 2 : 1;
    limit_[h] = std::min(limit_[h], rate);
  }
}

bool Scheduler::serves(const std::vector<Holder>& holders, double rate) {
  order(holders);
  for (const auto& attempt : attempts) {
    set_limits(holders);
    level(holders, attempt.slack);
    ends_keep_ = attempt.ends_keep;
    starts_first_ = attempt.starts_first;
    for (int i = 0; i < line_passes; ++i) {
      if (pass(holders, rate) > 0) {
        if (&attempt == attempts && i == 0) return false;  // lower limits don't help
        break;
      }
      if (keep_lines(holders)) return true;
    }
  }
  return false;
}

double Scheduler::largest_rate(const std::vector<Holder>& holders, double served, double above) {
  for (int i = 0; i < bisections && above - served > precise * above; ++i) {
    const double middle = served + (above - served) / 2;
    (serves(holders, middle) ? served : above) = middle;
  }
  return served;
}

Schedule Scheduler::best(const std::vector<Holder>& holders) {
  double most = 0;
  for (const Holder& holder : holders) {
    if (!holder.range.empty()) most += holder.speed;
  }
  most /= chain_.work(chain_.whole());
  Schedule schedule;
  schedule.peak.assign(holders.size(), 0);
  schedule.idle.assign(holders.size(), 0);
  if (!(most > 0)) return schedule;
  // With lines, a rate may be served although a lower one is not, so several starts are tried.
  for (double part = 1; part > 0.2 && schedule.throughput == 0; part *= start_step) {
    const double rate = part * most;
    if (serves(holders, rate)) schedule.throughput = largest_rate(holders, rate, rate / start_step);
  }
  if (schedule.throughput == 0) schedule.throughput = largest_rate(holders, 0, most);
  if (schedule.throughput > 0 && serves(holders, schedule.throughput)) {
    schedule.peak = peak();
    schedule.idle = idle();
  }
  shortfall(holders, std::max(schedule.throughput, most * precise) * (1 + 1e-3));
  while (schedule.bottleneck + 1 < chain_.size() && !(unmet()[schedule.bottleneck] > 0))
    ++schedule.bottleneck;
  return schedule;
}

Schedule best_schedule(const Chain& chain, const std::vector<Holder>& holders) {
  return Scheduler(chain).best(holders);
}

}  // namespace neuroshard::plan
