// When a node may open its next stream of a session to a peer, so that the peer never refuses one: refusals count as
// faults, and the peer would ban a node whose user lets it write many short texts.
//
// Pure. Threads: one.
#pragma once

#include <unordered_map>

#include "core/net/node_id.h"
#include "core/net/request_limiter.h"

namespace neuroshard::pipeline {

// Streams of sessions that a stage lets each known node open.
inline constexpr net::RequestLimits stream_limits{.per_second = 5, .burst = 50};

class OpeningPace {
 public:
  static constexpr std::size_t most_peers =
      1024;  // remembered; beyond that those that waited for nothing go first

  // The time to wait; counts the stream. Four fifths of what the peer allows, as clocks differ.
  Duration wait(const net::NodeId& peer, MonotonicTime now);
  // The stream that was counted is not opened.
  void give_back(const net::NodeId& peer);
  std::size_t remembered() const { return peers_.size(); }

 private:
  static constexpr double share = 0.8;
  std::unordered_map<net::NodeId, net::TokenBucket, net::NodeIdHash> peers_;
};

}  // namespace neuroshard::pipeline
