#include "core/pipeline/hop_times.h"

#include <algorithm>

#include "core/base/check.h"

namespace neuroshard::pipeline {

void HopTimes::add(const Route& route, Duration round_trip, const std::vector<HopTime>& times) {
  NS_CHECK(times.size() == route.hops.size());
  hops_.resize(times.size());
  Duration left = round_trip;
  for (std::size_t i = 0; i < times.size(); ++i) {
    const Duration computing = std::min<Duration>(std::chrono::microseconds(times[i].computing), left);
    const Duration later = std::min<Duration>(std::chrono::microseconds(times[i].later), left - computing);
    const Figure figure{computing, left - computing - later};
    Hop& hop = hops_[i];
    if (hop.node != route.hops[i].node) hop = {route.hops[i].node, {}, {}};
    hop.sum.computing += figure.computing;
    hop.sum.between += figure.between;
    hop.last.push_back(figure);
    if (hop.last.size() > most_counted) {
      hop.sum.computing -= hop.last.front().computing;
      hop.sum.between -= hop.last.front().between;
      hop.last.pop_front();
    }
    left = later;
  }
}

std::vector<std::optional<HopTimes::Figure>> HopTimes::means(const Route& route) const {
  std::vector<std::optional<Figure>> means(route.hops.size());
  for (std::size_t i = 0; i < std::min(means.size(), hops_.size()); ++i) {
    const Hop& hop = hops_[i];
    const auto count = static_cast<std::int64_t>(hop.last.size());
    if (count != 0 && hop.node == route.hops[i].node)
      means[i] = Figure{hop.sum.computing / count, hop.sum.between / count};
  }
  return means;
}

}  // namespace neuroshard::pipeline
