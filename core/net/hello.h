// What both ends of a connection tell each other before anything else: which network they belong to, which
// version of the peer protocol they speak, and what they can do. Who they are is not said but proven, by TLS.
#pragma once

#include <cstdint>
#include <string>

#include "core/base/bytes.h"
#include "core/base/expected.h"

namespace neuroshard::net {

// Of the peer protocol (proto/peer.proto). Same major: both ways. Another: refused, saying who should
// upgrade.
struct PeerVersion {
  std::uint32_t major = 0, minor = 0;
  friend bool operator==(const PeerVersion&, const PeerVersion&) = default;
};
inline constexpr PeerVersion peer_version{1, 0};

// What a node offers, as bits. Values are protocol: never renumber; unknown bits are kept and mean nothing.
enum class Feature : std::uint64_t {
  Dht = 1,          // a member of the table
  Peers = 2,        // names peers that it knows
  AddressEcho = 4,  // says from where it sees a caller
  DialBack = 8,     // tries to reach a caller from outside
  Tracker = 16,     // registers nodes
  Relay = 32,       // lets nodes that nobody can dial be called through it (core/nat/relay_head.h)
  Punch = 64,       // nobody can dial it, but a direct connection can be punched (core/swarm/puncher.h)
};

inline constexpr std::size_t max_program_name = 40;

struct Hello {
  PeerVersion version = peer_version;
  Hash256 network_id{};
  std::uint64_t features = 0;
  std::uint16_t port = 0;  // where the sender answers at the address that it is seen at; 0 = nowhere
  std::string program;     // "0.1.0"; for people

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
