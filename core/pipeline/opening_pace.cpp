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

void OpeningPace::give_back(const net::NodeId& peer) {
  if (const auto found = peers_.find(peer); found != peers_.end()) found->second.give_back(1);
}

}  // namespace neuroshard::pipeline
