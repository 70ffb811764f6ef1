// Limits the requests of callers and the bytes of requests and answers: one pair of token buckets per caller's id,
// one per address group of strangers, and one for all strangers together. It remembers the most recent callers
// only, so its memory is bounded.
#pragma once

#include <cstdint>
#include <list>
#include <unordered_map>

#include "core/base/clock.h"
#include "core/net/peer_caller.h"
#include "core/net/peer_ranks.h"
#include "core/net/token_bucket.h"

namespace neuroshard::net {

struct RequestLimits {
  double per_second = 20;
  double burst = 100;
  std::size_t callers = 4096;  // remembered; the one silent for longest is forgotten
  double group_factor = 4;     // the limit of one address group, in multiples of one caller
  double bytes_per_second = 256u << 10;
  double bytes_burst = 8u << 20;
  double strangers_factor = 64;  // the limit of all strangers together, in multiples of one caller
};

class RequestLimiter {
 public:
  // one_lan: only single callers are counted, no groups.  Threads: one.
  RequestLimiter(RequestLimits limits, bool one_lan) : limits_(limits), one_lan_(one_lan) {}
  // Whether this request may be served; if so, it counts, with its bytes. Callers that are known are not counted
  // by group.
  bool admit(const Caller& from, MonotonicTime now, std::size_t bytes = 0,
             PeerRank rank = PeerRank::Stranger);
  // Counts the bytes of an answer. The next requests wait until the rate has made up for them.
  void charge(const Caller& from, MonotonicTime now, std::size_t bytes, PeerRank rank);
  std::size_t remembered() const { return order_.size(); }

 private:
  struct Buckets {
    std::uint64_t key;
    TokenBucket calls, bytes;
  };
  struct Share {
    std::uint64_t key;
    double factor;
  };
  Buckets& buckets(const Share& share, MonotonicTime now);
  // The shares that count a request, of which the first `count` are used.
  struct Shares {
    Share of[3];
    std::size_t count;
  };
  Shares shares(const Caller& from, PeerRank rank) const;

  RequestLimits limits_;
  bool one_lan_;
  std::list<Buckets> order_;  // most recent first
  std::unordered_map<std::uint64_t, std::list<Buckets>::iterator> entries_;
};

}  // namespace neuroshard::net
