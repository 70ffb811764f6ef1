// Peers over gRPC: one port, mutual TLS 1.3 with certificates made from node keys, the messages of
// proto/peer.proto. The transport dials and answers; it checks the other end's key in both directions, here
// and nowhere else. It counts refusals with their reasons.
//
// gRPC is behind this header. Programs make a transport through core/network_module.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "core/base/clock.h"
#include "core/base/executor.h"
#include "core/base/log.h"
#include "core/crypto/keys.h"
#include "core/net/ban_list.h"
#include "core/net/conduct.h"
#include "core/net/line_speed.h"
#include "core/net/peer_channel.h"
#include "core/net/refusals.h"
#include "core/net/slot_pool.h"
#include "core/platform/socket/tls_listener.h"

namespace neuroshard::rpc {

// Bytes and age of the connections that were accepted. Bytes that belong to no answered call are *unearned*: TLS
// handshakes, frames of HTTP/2 that carry nothing, calls that are given up or refused.
struct ConnectionLimits {
  double unearned_per_second = 64u << 10;  // of the strangers of one address group, or of one known peer
  double unearned_burst = 10u << 20;       // requests of 4 MiB are unearned until they have arrived
  double known_factor = 16;                // a known peer has so many times as much
  double spared = 64u << 10;  // while a group has too much, its connections with less than this stay
  // The same of connections from addresses where nobody is known: their bytes wait in place of ending them.
  double shaped_per_second = 16u << 10, shaped_burst = 64u << 10, shaped_spared = 8u << 10;
  Duration held = std::chrono::seconds(10);  // then a connection whose bytes wait ends
  // TLS handshakes with a group of public addresses where nobody is known; a burst of 0: no limit.
  double greetings_per_second = 1, greetings_burst = 64;
  double given_up_per_second = 10;  // calls that are not answered, of one connection
  double given_up_burst = 512;
  Duration first_call = std::chrono::seconds(20);  // age without an answered call
  Duration next_call = std::chrono::seconds(150);  // of a stranger; gRPC ends idle connections before
};

// Bounds of the answering side.
struct RpcLimits {
  platform::TlsListenerLimits listener;
  ConnectionLimits connections;
  // Calls whose request has not arrived in full. Only one that has takes a place among `calls`.
  net::SlotLimits arriving{512, 32, 64, 192, 0};
  net::SlotLimits calls{256, 32, 48, 96, 32};  // being answered
  // Of a known peer as many as leave its calls room on a connection: it passes on the sessions of many drivers.
  net::SlotLimits streams{192, 8, 16, 144, 0, 40};
  net::SlotLimits held_bytes{64u << 20, 32u << 20, 12u << 20, 24u << 20, 8u << 20};  // of open requests
  net::SlotLimits leaving{96u << 20, 8u << 20, 16u << 20, 64u << 20, 0, 32u << 20};  // of answers
  std::size_t grpc_memory = 128u << 20;                  // of gRPC, all connections together
  Duration message_patience = std::chrono::seconds(10);  // for one message to arrive in full
  // Between two messages of a stream whose first one is here: longer than one waits for the user's limits.
  Duration stream_patience = std::chrono::seconds(90);
  // For an answer to be read, beside the time that its bytes take; its call ends then. No caller waits longer.
  Duration answer_patience = std::chrono::seconds(60);
  // The place of a stranger's request that did not arrive in time stays taken for so long.
  Duration late_request = std::chrono::seconds(60);

  // All callers are on one's own network: nobody is counted by address.
  void share_one_lan() {
    listener.per_address = 0;
    connections.greetings_burst = 0;
    for (net::SlotLimits* const pool : {&arriving, &calls, &streams, &held_bytes, &leaving})
      pool->per_group = 0;
  }
};

struct RpcOptions {
  // Whether the machine is short of memory: connections are ended, those of strangers first. None: never.
  std::function<bool()> memory_is_short;
  std::optional<platform::Endpoint> listen;  // nothing: it only dials
  std::uint64_t seed = 0;                    // of limits by address; nobody else knows it
  net::Hello hello;
  RpcLimits limits;
  // Connections that begin with one of these bytes are not TLS: a relay takes them on the same port. Called
  // on the listener's thread, until the transport is destroyed; the receiver owns the descriptor.
  std::string plain_begins;
  std::function<void(int descriptor)> plain;
};

struct RpcServices {  // all outlive the transport
  const crypto::KeyPair& key;
  Executor& executor;
  const Clock& clock;  // read from any thread
  net::BanList& bans;
  net::RefusalCounts& refusals;
  net::Conduct* conduct = nullptr;        // counts the faults of others; may be null
  net::LineSpeed* line = nullptr;         // measures how large answers leave; may be null
  const net::PeerRanks* ranks = nullptr;  // null: all callers are strangers
};

class GrpcTransport : public net::PeerTransport {
 public:
  // Where it listens; port 0 if it does not.
  virtual platform::Endpoint endpoint() const = 0;
  // Answers calls; until it is set, and after it is set to null, calls are refused. It outlives the transport
  // or is withdrawn.
  virtual void serve(net::PeerService* service) = 0;
  virtual std::size_t open_connections() const = 0;
};

// Listens at once.  Threads: the executor's, or before it runs; destroy on the executor's or after it
// stopped. Errors: those of TlsListener::open; Internal.
Expected<std::unique_ptr<GrpcTransport>> make_grpc_transport(RpcServices services, RpcOptions options);

}  // namespace neuroshard::rpc
