#include "core/pipeline/opening_pace.h"

#include <iterator>

namespace neuroshard::pipeline {

Duration OpeningPace::wait(const net::NodeId& peer, MonotonicTime now) {
  constexpr double rate = share * stream_limits.per_second, burst = share * stream_limits.burst;
  if (peers_.size() >= most_peers && !peers_.contains(peer))
    for (auto at = peers_.begin(); at != peers_.end();)
      at = at->second.available(now) >= burst ? peers_.erase(at) : std::next(at);
  return peers_.try_emplace(peer, rate, burst, now).first->second.take(1, now);
}

}  // namespace neuroshard::pipeline
