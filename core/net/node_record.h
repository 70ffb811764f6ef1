// A node's record of itself, signed by its key: its endpoints, what it offers and holds, and the wallet that
// it works for. Records travel through third parties (trackers, the hash table, peers), so readers trust only
// what the signature covers. A node's newer record replaces the older one.
//
//   offset  size  content, little-endian
//   0       4     "NSNR"
//   4       2     version, 1
//   6       2     length of the whole record
//   8       32    node key
//   40      8     sequence
//   48      8     made, milliseconds since 1970 UTC
//   56      8     expiry, likewise
//   64      8     features (net/hello.h)
//   72      4     protocol version, major u16 and minor u16
//   76      8     memory given, bytes
//   84      4     measured speed, tokens per second
//   88      8     measured upload, bytes per second
//   96      8     measured download, bytes per second
//   104     1     1: a delegation follows; 0: none (the node works for nobody yet)
//   105     1     endpoints, n ≤ 4
//   106     2     slots, m ≤ 256
//   108     1     length of the program's name, p ≤ 40
//   109     184   the delegation, if any
//           19 n  endpoints: how u8 · address 16 · port u16
//           5 m   slots: kind u8 · layer u16 · expert u16, ascending, none twice
//           p     the program's name
//           64    signature by the node key, purpose NodeRecord, over all before it
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/base/bytes.h"
#include "core/base/clock.h"
#include "core/base/expected.h"
#include "core/crypto/delegation.h"
#include "core/crypto/keys.h"
#include "core/net/hello.h"
#include "core/net/node_id.h"
#include "core/platform/socket/ip_address.h"

namespace neuroshard::net {

inline constexpr std::size_t max_node_record_bytes = 2048;
inline constexpr std::size_t max_endpoints = 4;
inline constexpr std::size_t max_slots = 256;
inline constexpr auto longest_node_record = std::chrono::hours(24);
inline constexpr auto clock_skew = std::chrono::seconds(60);

// How a node is reached at an endpoint.
enum class Reach : std::uint8_t {
  Direct = 1,   // dial it
  Relayed = 2,  // through the relay that answers there
  Turn = 3,     // dial it: a TURN server forwards the addresses that the node has permitted (nat/turn_hold.h)
};

struct NodeEndpoint {
  Reach reach = Reach::Direct;
  platform::Endpoint endpoint;
  friend bool operator==(const NodeEndpoint&, const NodeEndpoint&) = default;
};

enum class SlotKind : std::uint8_t { Embed = 1, Layer = 2, Expert = 3, Head = 4 };

struct HeldSlot {
  SlotKind kind = SlotKind::Layer;
  std::uint16_t layer = 0;
  std::uint16_t expert = 0;
  friend auto operator<=>(const HeldSlot&, const HeldSlot&) = default;
};

struct NodeRecord {
  crypto::PublicKey node_key{};
  std::uint64_t sequence = 0;
  WallTime made{};
  WallTime expires{};
  std::uint64_t features = 0;
  PeerVersion version;
  std::uint64_t memory_bytes = 0;
  std::uint32_t tokens_per_second = 0;
  std::uint64_t upload = 0, download = 0;  // bytes per second; 0 = not measured
  std::optional<crypto::Delegation> delegation;
  std::vector<NodeEndpoint> endpoints;  // the best first; empty = nobody can call it
  std::vector<HeldSlot> slots;
  std::string program;
  crypto::Signature signature{};

  NodeId id() const { return crypto::node_id(node_key); }
};

// Sorts the slots, drops duplicates, sets node_key and signs. InvalidArgument: more than the limits allow.
Expected<void> sign_node_record(NodeRecord& record, const crypto::KeyPair& node, const Hash256& network_id);

Bytes encode_node_record(const NodeRecord& record);
// Any bytes are safe. The signature is not checked. Corrupt, Unsupported.
Expected<NodeRecord> decode_node_record(ByteSpan bytes);

// Whether readers may trust it now, in this network: signature, dates (made ≤ now + 60 s, now < expires ≤
// made + a day), and the delegation for this node and network, if there is one. Denied: the message names the
// check that failed.
Expected<void> check_node_record(const NodeRecord& record, const Hash256& network_id, WallTime now);
// Whether its node signed it for this network. Ignores the dates, because clocks may be wrong.
bool is_signed_by_its_node(const NodeRecord& record, const Hash256& network_id);
// Whether it can't ever have held, whatever the clocks say: its node has not signed it, or its delegation is
// for another node or network or not signed by the wallet. A node that passes such a record on has not
// checked it.
bool never_held(const NodeRecord& record, const Hash256& network_id);

}  // namespace neuroshard::net
