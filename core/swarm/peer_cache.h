// The peers that answered lately, with their signed records: the first peers of the node's next start, before
// trackers. A record counts here beyond its expiry: its signature still proves that the node was at that
// address, and the node that answers there must prove the same id.
//
//   offset  size  content, little-endian
//   0       4     "NSGP"
//   4       2     version, 1
//   6       2     peers, n ≤ 64, the last heard first
//           n     each: heard i64, milliseconds since 1970 UTC · length u16 · node record (net/node_record.h)
//           32    SHA-256 of everything before
#pragma once

#include <map>
#include <vector>

#include "core/base/bytes.h"
#include "core/base/expected.h"
#include "core/net/node_record.h"

namespace neuroshard::swarm {

inline constexpr std::size_t max_cached_peers = 64;
inline constexpr std::size_t max_peer_cache_bytes = 40 + max_cached_peers * (10 + net::max_node_record_bytes);

struct CachedPeer {
  net::NodeRecord record;
  WallTime heard{};
};

Bytes encode_peer_cache(const std::vector<CachedPeer>& peers);
// Any bytes are safe. The records' signatures are not checked. Corrupt; Unsupported for a later version.
Expected<std::vector<CachedPeer>> decode_peer_cache(ByteSpan bytes);

// Keeps the newest record of each peer, and 64 peers: those of a large address group make room first, of them
// the one that was heard longest ago.  Threads: one.
class GoodPeers {
 public:
  void heard(const net::NodeRecord& record, WallTime when);
  std::vector<CachedPeer> list() const;  // the last heard first

 private:
  std::map<net::NodeId, CachedPeer> peers_;
};

}  // namespace neuroshard::swarm
