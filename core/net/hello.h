// The first message of both ends of a connection: their network, their version of the peer protocol and their
// features. TLS proves who they are.
#pragma once

#include <cstdint>
#include <string>

#include "core/base/bytes.h"
#include "core/base/expected.h"

namespace neuroshard::net {

// Version of the peer protocol (proto/peer.proto). Versions of one major understand each other; another major
// is refused, and the message says which side should upgrade.
struct PeerVersion {
  std::uint32_t major = 0, minor = 0;
  friend bool operator==(const PeerVersion&, const PeerVersion&) = default;
};
inline constexpr PeerVersion peer_version{1, 0};

// A node's features, as bits. Values are protocol: never renumber; unknown bits are kept and ignored.
enum class Feature : std::uint64_t {
  Dht = 1,          // a member of the hash table
  Peers = 2,        // gives the records of other nodes
  AddressEcho = 4,  // tells a caller the address at which it sees it
  DialBack = 8,     // dials a caller from outside
  Tracker = 16,     // registers nodes
  Relay = 32,       // relays calls to nodes that nobody can dial (core/nat/relay_head.h)
  Punch = 64,       // nobody can dial it, but a direct connection can be punched (core/swarm/puncher.h)
};

inline constexpr std::size_t max_program_name = 40;

struct Hello {
  PeerVersion version = peer_version;
  Hash256 network_id{};
  std::uint64_t features = 0;
  std::uint16_t port = 0;  // where the sender listens, at the address at which others see it; 0 = it does not
  std::string program;     // "0.1.0"; shown to users

  bool offers(Feature feature) const { return (features & static_cast<std::uint64_t>(feature)) != 0; }
};
constexpr std::uint64_t operator|(Feature a, Feature b) {
  return static_cast<std::uint64_t>(a) | static_cast<std::uint64_t>(b);
}
constexpr std::uint64_t operator|(std::uint64_t a, Feature b) {
  return a | static_cast<std::uint64_t>(b);
}

// Denied: another network. Unsupported: another major; the message says which side to upgrade.
Expected<void> check_hello(const Hello& own, const Hello& peer);

}  // namespace neuroshard::net
