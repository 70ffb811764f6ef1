#include "core/sim/homes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/base/rng.h"

namespace neuroshard::sim {
namespace {

constexpr double hour = 3'600;
constexpr double session_shape = 0.6;    // of the Weibull distribution
constexpr double settled_sessions = 40;  // mean lengths after which arrivals and departures are even
constexpr double inflation = 10;
constexpr std::uint64_t gigabyte = 1'000'000'000;
constexpr double megabit = 125'000;                                         // bytes/s
constexpr std::uint64_t memories[] = {4, 6, 8, 8, 12, 16, 16, 24, 32, 64};  // GB

class Homes {
 public:
  explicit Homes(const HomesOptions& options)
      : o_(options),
        rng_(options.seed),
        end_(options.hours * hour),
        first_(static_cast<double>(options.nodes_at_start == 0 ? options.nodes : options.nodes_at_start)) {}

  std::vector<Home> make() {
    if (o_.leaving_per_hour <= 0) {
      for (double i = 0; i < first_; ++i) add(0);
      arrive(0);
    } else {
      arrive(-settled_sessions * mean_session());
    }
    return std::move(homes_);
  }

 private:
  double mean_session() const { return hour / o_.leaving_per_hour; }

  // Nodes that are to be there.
  double target(double time) const {
    return first_ + (static_cast<double>(o_.nodes) - first_) * std::clamp(time / end_, 0.0, 1.0);
  }

  // A Poisson process: arrivals replace who leaves for good, and make the number grow.
  void arrive(double from) {
    const double grows = (static_cast<double>(o_.nodes) - first_) / end_;
    for (double time = from; time < end_;) {
      double rate = o_.leaving_per_hour <= 0 ? 0 : target(time) / mean_session() * (1 - o_.returning);
      if (time >= 0) rate += grows;
      if (rate <= 0 && time >= 0) return;
      time += exponential(1 / rate);
      if (time < end_) add(time);
    }
  }

  double exponential(double mean) { return std::round(-mean * std::log(1 - rng_.uniform())); }

  double session_length() {
    if (o_.leaving_per_hour <= 0) return 2 * end_ + hour;
    const double scale = mean_session() / std::tgamma(1 + 1 / session_shape);
    return 1 + std::round(scale * std::pow(-std::log(1 - rng_.uniform()), 1 / session_shape));
  }

  void add(double time) {
    Home home;
    do {
      const double length = session_length();
      if (time + length > 0)
        home.sessions.push_back({static_cast<std::int64_t>(time), static_cast<std::int64_t>(time + length)});
      time += length;
      if (time >= end_ || rng_.uniform() >= o_.returning) break;
      time += 1 + exponential(o_.away_hours * hour);
    } while (time < end_);
    if (home.sessions.empty()) return;
    equip(home);
    homes_.push_back(std::move(home));
  }

  void equip(Home& home) {
    const std::size_t number = homes_.size();
    plan::PlanPeer& peer = home.peer;
    peer.id = fmt::format("node{:06}", number);
    peer.owner = fmt::format("owner{:06}", number / o_.peers_per_owner);
    peer.memory = memories[rng_.below(std::size(memories))] * gigabyte;
    peer.speed = 1e6 * std::round(5e4 * std::pow(10.0, o_.speed_decades * rng_.uniform() * rng_.uniform()));
    peer.up = std::round(megabit * o_.line_least * std::pow(o_.line_most / o_.line_least, rng_.uniform()));
    peer.down = std::round(peer.up * (1 + 4 * rng_.uniform()));
    home.declared = peer;
    if (rng_.uniform() >= o_.inflated) return;
    home.declared.speed *= inflation;
    home.declared.memory *= static_cast<std::uint64_t>(inflation);
  }

  const HomesOptions& o_;
  Rng rng_;
  const double end_, first_;
  std::vector<Home> homes_;
};

}  // namespace

std::vector<Home> make_homes(const HomesOptions& options) {
  return Homes(options).make();
}

}  // namespace neuroshard::sim
