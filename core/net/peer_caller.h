// Calls to peers, over pooled channels with mutual TLS or over the simulated network. Both ends have proven
// their keys; nothing else is trusted.
#pragma once

#include <cstdint>
#include <functional>

#include "core/base/bytes.h"
#include "core/base/clock.h"
#include "core/base/expected.h"
#include "core/net/node_id.h"
#include "core/platform/socket/ip_address.h"

namespace neuroshard::net {

// The kind of a request. Values are protocol: never renumber.
enum class Method : std::uint16_t {
  Ping = 1,  // core/swarm/messages.h, and so to TrackerPeers
  Peers = 2,
  AddressEcho = 3,
  DialBack = 4,
  RelayReserve = 5,
  Punch = 6,
  LetIn = 7,
  TrackerRegister = 8,
  TrackerHeartbeat = 9,
  TrackerPeers = 10,
  DhtPing = 16,  // core/dht/messages.h
  DhtFindNode = 17,
  DhtFindValue = 18,
  DhtStore = 19,
  // 32 to 35: rounds before the chain
  ChainPost = 36,  // core/chain/messages.h
  ChainStatus = 37,
  ChainBlocks = 38,
  ChainRegistry = 39,
  RoundPiece = 40,    // core/rounds/pieces.h
  StatusPull = 48,    // core/status/gossip.h
  ContentNamed = 64,  // core/exchange/messages.h
  ContentPieces = 65,
  ContentPiece = 66,
  PipelineSession = 72,  // a stream; core/pipeline/messages.h
};

// A claimed address of the peer with this id. Dialling it proves the id.
struct Contact {
  NodeId id{};
  platform::Endpoint endpoint;
  friend bool operator==(const Contact&, const Contact&) = default;
};

// The sender of a request; the connection proves it.
struct Caller {
  NodeId id{};
  platform::Endpoint endpoint;  // the remote address; behind a relay, the relay's
};

using CallDone = std::function<void(Expected<Bytes>)>;

// Where calls to a contact go.
enum class CallPath : std::uint8_t {
  There,      // to its address
  Elsewhere,  // over a connection with the same peer that leads to another address
  None,       // the peer is not connected
};

class PeerCaller {
 public:
  virtual ~PeerCaller() = default;
  // Connects if needed, calls, and calls `done` exactly once, later, on the caller's executor: with the
  // answer, or Timeout, Unavailable (not reached, or the connection broke), Denied (another id than expected,
  // or refused; the message says why), Exhausted (too many calls wait).  Threads: the executor's.
  virtual void call(const Contact& peer, Method method, Bytes request, Duration deadline, CallDone done) = 0;
  // Where calls to this contact go now. An answer says something about its address only if they go there. A
  // caller that keeps no connections calls each address anew.
  virtual CallPath path_to(const Contact&) const { return CallPath::There; }
};

// The node behind a contact, after its answer. Its address is left out unless calls go there: the contact may
// name that of somebody else.
inline Caller answerer(const PeerCaller& caller, const Contact& contact) {
  const bool there = caller.path_to(contact) == CallPath::There;
  return {contact.id, there ? contact.endpoint : platform::Endpoint{}};
}

// Answers one request, at once or later, exactly once; an error travels to the caller as its code and
// message.
using Respond = std::function<void(Expected<Bytes>)>;

}  // namespace neuroshard::net
