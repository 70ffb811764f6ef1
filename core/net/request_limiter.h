// Limits the requests of callers and the bytes of requests and answers. A known caller has a pair of token buckets
// of its own. A stranger takes from three pairs: its id's, its address group's, and the one of all strangers. Those
// of ids and groups are in tables of fixed size, so its memory is bounded, and no number of ids resets a bucket.
#pragma once

#include <cstdint>
#include <list>
#include <unordered_map>

#include "core/base/clock.h"
#include "core/net/hashed_buckets.h"
#include "core/net/peer_caller.h"
#include "core/net/peer_ranks.h"
#include "core/net/token_bucket.h"

namespace neuroshard::net {

struct RequestLimits {
  double per_second = 20;
  double burst = 100;
  std::size_t callers = 4096;  // known ones, remembered; the one silent for longest is forgotten
  double group_factor = 4;     // the limit of one address group, in multiples of one caller
  double bytes_per_second = 256u << 10;
  double bytes_burst = 8u << 20;
  double strangers_factor = 64;  // the limit of all strangers together, in multiples of one caller
  std::size_t buckets = 2048;    // for the ids of strangers, and as many for groups
};

class RequestLimiter {
 public:
  // one_lan: only single callers are counted, no groups. seed: nobody else knows it.  Threads: one.
  RequestLimiter(RequestLimits limits, bool one_lan, std::uint64_t seed);
  // The owner of the limit that a request exceeds.
  enum class Exceeded : std::uint8_t { Nobodys, Own, Group, Strangers };
  // For a request that comes now. The caller's own limit is checked first.
  Exceeded exceeded(const Caller& from, MonotonicTime now, std::size_t bytes, PeerRank rank);
  // Whether this request may be served; if so, it counts, with its bytes. One that is refused costs nobody
  // anything.
  bool admit(const Caller& from, MonotonicTime now, std::size_t bytes = 0,
             PeerRank rank = PeerRank::Stranger);
  // Counts the bytes of an answer. The next requests wait until the rate has made up for them.
  void charge(const Caller& from, MonotonicTime now, std::size_t bytes, PeerRank rank);
  std::size_t remembered() const { return order_.size(); }

 private:
  struct Buckets {
    TokenBucket calls, bytes;
  };
  struct Table {
    HashedBuckets calls, bytes;
  };
  struct Known {
    NodeId id;
    Buckets of;
  };
  struct Share {
    TokenBucket *calls = nullptr, *bytes = nullptr;
  };
  // Those that count a request, of which the first `count` are used.
  struct Shares {
    Share of[3];
    std::size_t count;
  };
  Buckets full(double factor) const;
  Table table(double factor, std::uint64_t seed) const;
  Buckets& of_known(const NodeId& id);
  Shares shares(const Caller& from, PeerRank rank);

  const RequestLimits limits_;
  const bool one_lan_;
  Table ids_, groups_;
  Buckets strangers_;
  std::list<Known> order_;  // most recent first
  std::unordered_map<NodeId, std::list<Known>::iterator, NodeIdHash> known_;
};

}  // namespace neuroshard::net
