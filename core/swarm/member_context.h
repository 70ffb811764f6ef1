// The options and services of a member, and the context that its parts share (bootstrap.h, advertiser.h,
// reachability.h).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/base/executor.h"
#include "core/base/log.h"
#include "core/base/rng.h"
#include "core/crypto/keys.h"
#include "core/nat/relay_role.h"
#include "core/nat/router_port.h"
#include "core/net/conduct.h"
#include "core/net/line_speed.h"
#include "core/net/peer_pool.h"
#include "core/net/peer_ranks.h"
#include "core/swarm/first_peer.h"
#include "core/swarm/path_transport.h"
#include "core/swarm/peer_cache.h"

namespace neuroshard::swarm {

struct MemberOptions {
  Hash256 network_id{};
  std::string program;
  std::uint16_t port = 0;          // where it listens; 0 = it only dials
  platform::IpAddress listens_at;  // of one IP version; "::": of both
  bool one_lan = false;            // a private network: private addresses count
  bool tracker = false;            // serves as one
  std::vector<FirstPeer> sources;  // trackers and bootstrap peers
  std::vector<CachedPeer> cached;  // of an earlier run; dialled first, four at a time
  net::NodeRecord facts;           // memory, speed, slots, delegation; the member fills in the rest
  Duration heartbeat = std::chrono::seconds(10);
  Duration record_life = std::chrono::hours(1);
  Duration first_pause = std::chrono::seconds(1);
  Duration longest_pause = std::chrono::seconds(60);
  // The least time between two records that differ only in capacity or in the speed of the line.
  Duration capacity_told = std::chrono::seconds(60);
  std::string turn_server;   // the user's own: "turn.example.org:3478"; empty: none
  std::string turn_trouble;  // why it is not used, if that is known at the start (there is no account for it)

  bool listens_in_version_of(const platform::IpAddress& ip) const {
    return listens_at == platform::IpAddress{} || listens_at.is_v4() == ip.is_v4();
  }
};

struct MemberServices {  // all outlive the member
  const crypto::KeyPair& key;
  net::PeerTransport& transport;
  Executor& executor;
  const Clock& clock;
  Logger& logger;
  NameResolver* names = nullptr;  // null: no source has a name
  // How others reach the node when they can't dial it directly; null: not at all, as in the simulated world.
  nat::RouterPort* router = nullptr;
  nat::Tunnels* tunnels = nullptr;
  nat::RelayRole* relay = nullptr;        // the node relays for others once it can be dialled
  net::Conduct* conduct = nullptr;        // counts the faults of other nodes
  const net::LineSpeed* line = nullptr;   // measured; null: the record does not name it
  const net::PeerRanks* ranks = nullptr;  // null: all callers are strangers
  // Whether an interface of this machine is in the address's subnet; null: none is.
  std::function<bool(const platform::IpAddress&)> on_own_subnet = nullptr;
  // Whether the user's limits leave data to relay for others now; null: always.
  std::function<bool()> has_relay_data = nullptr;
};

// All outlive the parts.
struct MemberContext {
  const MemberServices& services;
  const MemberOptions& options;
  const net::NodeId id;
  Rng& rng;                        // one sequence for all parts, so that a seed replays the whole member
  const std::uint64_t table_seed;  // of tables by a keyed hash (net/hashed_buckets.h)
  net::NodeBook& book;
  net::DialGate& gate;
  PathTransport& paths;
  net::PeerPool& pool;
};

}  // namespace neuroshard::swarm
