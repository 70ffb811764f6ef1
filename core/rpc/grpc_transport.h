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
#include "core/platform/socket/tls_listener.h"

namespace neuroshard::rpc {

// Bounds of the answering side.
struct RpcLimits {
  platform::TlsListenerLimits listener;
  std::size_t calls = 256;  // answered at the same time
  std::size_t calls_per_peer = 32;
  std::size_t streams = 64;
  std::size_t streams_per_peer = 8;
  std::size_t held_bytes = 64u << 20;                    // of open requests
  std::size_t grpc_memory = 128u << 20;                  // of gRPC, all connections together
  Duration message_patience = std::chrono::seconds(10);  // for one message to arrive in full
};

struct RpcOptions {
  std::optional<platform::Endpoint> listen;  // nothing: it only dials
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
  net::Conduct* conduct = nullptr;  // counts the faults of others; may be null
  net::LineSpeed* line = nullptr;   // measures how large answers leave; may be null
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
