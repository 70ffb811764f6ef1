// Limits the requests of strangers: one token bucket per caller's id and one per address group. It remembers
// the most recent callers only, so its memory is bounded.
#pragma once

#include <cstdint>
#include <list>
#include <unordered_map>

#include "core/base/clock.h"
#include "core/net/peer_caller.h"
#include "core/net/token_bucket.h"

namespace neuroshard::net {

struct RequestLimits {
  double per_second = 20;
  double burst = 100;
  std::size_t callers = 4096;  // remembered; the one silent for longest is forgotten
  double group_factor = 4;     // the limit of one address group, in multiples of one caller
};

class RequestLimiter {
 public:
  // one_lan: address groups are not counted.  Threads: one.
  RequestLimiter(RequestLimits limits, bool one_lan) : limits_(limits), one_lan_(one_lan) {}
  // Whether this request may be served; if so, it counts.
  bool admit(const Caller& from, MonotonicTime now);
  std::size_t remembered() const { return order_.size(); }

 private:
  struct Entry {
    std::uint64_t key;
    TokenBucket bucket;
  };
  TokenBucket& bucket(std::uint64_t key, double factor, MonotonicTime now);

  RequestLimits limits_;
  bool one_lan_;
  std::list<Entry> order_;  // most recent first
  std::unordered_map<std::uint64_t, std::list<Entry>::iterator> entries_;
};

}  // namespace neuroshard::net
