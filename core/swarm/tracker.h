// The tracker's table: the network's nodes by their own signed records. A node that is silent for 30 s is
// dropped. A tracker holds no secrets and is not trusted: nodes sign the records that it hands out, and the
// network works without it.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "core/base/rng.h"
#include "core/net/node_book.h"
#include "core/net/peer_caller.h"

namespace neuroshard::swarm {

struct TrackerLimits {
  std::size_t nodes = 10'000;
  std::size_t per_group = 64;  // nodes of one address group (platform::prefix_group)
  Duration silence = std::chrono::seconds(30);
};

struct TrackerStatistics {
  std::size_t nodes = 0;
  std::size_t reachable = 0;  // whose record has an endpoint
  std::uint64_t memory_bytes = 0;
  std::uint64_t tokens_per_second = 0;
};

class Tracker {
 public:
  // one_lan: private addresses, and many nodes of one range.  Threads: one.
  Tracker(const Hash256& network_id, bool one_lan, std::uint64_t seed, TrackerLimits limits = {});

  // Denied: another node's record, one that does not hold, or a direct endpoint at an address at which the
  // caller is not seen (others would dial a stranger). Exhausted: full.
  Expected<void> enter(const net::Caller& from, const net::NodeRecord& record, WallTime now);
  // NotFound: not registered, or no longer.
  Expected<void> heartbeat(const net::Caller& from, WallTime now);

  // Up to `count` (50 at most) random reachable nodes, of as many address groups as possible, without the
  // caller.
  std::vector<const net::NodeRecord*> sample(const net::NodeId& asker, std::size_t count, WallTime now);
  TrackerStatistics statistics(WallTime now) const;
  std::uint64_t forged() const { return book_.forged(); }  // that never held (net/node_book.h)

 private:
  struct Entry {
    WallTime heard{};
    std::uint64_t group = 0;
  };
  void drop_silent(WallTime now);

  const bool one_lan_;
  const TrackerLimits limits_;
  Rng rng_;
  net::NodeBook book_;
  std::unordered_map<net::NodeId, Entry, net::NodeIdHash> entries_;
};

}  // namespace neuroshard::swarm
