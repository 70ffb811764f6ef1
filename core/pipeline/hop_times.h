// The times of a route's hops, as its driver shows them: means of the last micro-batches.
//
// The round trip to a hop begins when the hop before it sends the micro-batch, and ends when that one has the result. In
// this time the hop computes, and the later hops have their round trip; the rest is the line and waiting. One clock
// measures each round trip, so nobody compares two clocks.
//
// The driver measures the first round trip itself, and none counts as longer than the one around it. So false times of a
// stage change the shares of the hops, and never their sum. Only people see the figures; nothing is decided by them.
//
// Memory: most_counted figures for each hop. Threads: as a value.
#pragma once

#include <deque>
#include <optional>
#include <vector>

#include "core/pipeline/messages.h"

namespace neuroshard::pipeline {

class HopTimes {
 public:
  static constexpr std::size_t most_counted = 32;  // micro-batches

  struct Figure {
    Duration computing{0};
    Duration between{0};  // on the line there and back, and waiting at the hop
    friend bool operator==(const Figure&, const Figure&) = default;
  };

  // A micro-batch that passed the nodes of this route. times: of each hop, as the result of the first one has them.
  void add(const Route& route, Duration round_trip, const std::vector<HopTime>& times);
  // By position: the means. Nothing: no micro-batch has passed the node that is there now.
  std::vector<std::optional<Figure>> means(const Route& route) const;

 private:
  struct Hop {
    net::NodeId node{};  // that the figures are of
    std::deque<Figure> last;
    Figure sum;
  };
  std::vector<Hop> hops_;  // by position
};

}  // namespace neuroshard::pipeline
