// The limits of fetches from strangers, nodes that the chain does not name. One that says that there is a newer
// block makes this node ask it for blocks, and its answer may have megabytes. So such calls have the limits of a
// method: of the stranger, its address group and all strangers, calls and bytes. The bytes are among those of
// strangers in the month's data. Other peers are asked at each poll, so a node that refuses follows all the same.
//
// Threads: the executor's. All outlive it.
#pragma once

#include "core/net/request_limiter.h"
#include "core/net/traffic_meter.h"

namespace neuroshard::chain {

inline constexpr net::RequestLimits fetches_of_stranger{.per_second = 0.5,
                                                        .burst = 8,
                                                        .group_factor = 2,
                                                        .bytes_per_second = 64u << 10,
                                                        .bytes_burst = 5u << 20,
                                                        .strangers_factor = 4,
                                                        .buckets = 512};

class StrangerFetches {
 public:
  // meter: of the month's data; null: nothing is counted.
  StrangerFetches(const Clock& clock, net::TrafficMeter* meter, std::uint64_t seed)
      : clock_(clock), meter_(meter), limiter_(fetches_of_stranger, false, seed) {}
  // Whether this node asks this stranger because it says so.
  bool admit(const net::Caller& stranger) {
    return (meter_ == nullptr || meter_->check_strangers().ok()) &&
           limiter_.admit(stranger, clock_.monotonic_now());
  }
  void answered(const net::Contact& stranger, std::size_t bytes) {
    limiter_.charge({stranger.id, stranger.endpoint}, clock_.monotonic_now(), bytes, net::PeerRank::Stranger);
    if (meter_ != nullptr) meter_->of_stranger(bytes);
  }

 private:
  const Clock& clock_;
  net::TrafficMeter* const meter_;
  net::RequestLimiter limiter_;
};

}  // namespace neuroshard::chain
