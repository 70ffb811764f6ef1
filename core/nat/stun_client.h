// Asking a STUN server how the world sees this machine (RFC 8489), over UDP or TCP, and finding out from two
// servers whether a NAT gives one outside port to all destinations (RFC 5780 §4.3, without its
// CHANGE-REQUEST: two servers with different addresses do as well). What a server says is a claim: only a
// dial-back decides whether a port can be reached.
#pragma once

#include <optional>

#include "core/nat/io.h"
#include "core/nat/retransmission.h"
#include "core/nat/stun_message.h"
#include "core/platform/socket/udp_socket.h"

namespace neuroshard::nat {

// One Binding request over UDP, without a socket: what to send when, and what an arriving datagram means.
// Threads: one.
class BindingQuery {
 public:
  BindingQuery(const platform::Endpoint& server, crypto::Entropy& entropy, const RetransmissionRule& rule,
               MonotonicTime now);

  const platform::Endpoint& server() const { return server_; }
  // The datagram to send to server() now, if one is due.
  std::optional<ByteSpan> due(MonotonicTime now);
  MonotonicTime next() const { return retransmission_.next(); }
  // A datagram arrived. What is not the answer of this server to this request changes nothing.
  void receive(ByteSpan datagram, const platform::Endpoint& from);
  // Nothing while it is open; then the outside endpoint, or Timeout, Unavailable (the server refuses).
  std::optional<Expected<platform::Endpoint>> result(MonotonicTime now) const;

 private:
  platform::Endpoint server_;
  stun::TransactionId transaction_{};
  Bytes request_;
  Retransmission retransmission_;
  std::optional<Expected<platform::Endpoint>> answer_;
};

// The outside endpoint of this socket as the server sees it. Timeout, Unavailable, Cancelled.
Expected<platform::Endpoint> outside_endpoint_udp(const Io& io, platform::UdpSocket& socket,
                                                  const platform::Endpoint& server,
                                                  const RetransmissionRule& rule = stun_rule);

struct OutsideTcp {
  platform::Endpoint outside;
  platform::TcpSocket connection;  // while it is open, the NAT keeps the mapping
};
// The outside endpoint of a connection to the server that is dialled as `options` say.
Expected<OutsideTcp> outside_endpoint_tcp(const Io& io, const platform::Endpoint& server,
                                          const platform::DialOptions& options, MonotonicTime deadline);

enum class Mapping {
  NoAnswer,             // no server answered: this way out is blocked, or the servers are away
  None,                 // the outside address is this machine's own: no NAT
  OneServer,            // there is a NAT; one answer can't tell which kind
  EndpointIndependent,  // the same outside port to everybody: others can punch through
  EndpointDependent,    // "symmetric": another outside port for each destination
};
std::string_view to_text(Mapping mapping);

struct MappingFinding {
  Mapping mapping = Mapping::NoAnswer;
  platform::Endpoint local;                   // from where was asked
  std::optional<platform::Endpoint> outside;  // as the first server that answered saw it
  std::vector<Error> failures;                // one per server that did not answer
};
// Asks each server in turn from one local port. Errors are about this machine (no socket) or Cancelled only.
Expected<MappingFinding> find_mapping_udp(const Io& io, Span<const platform::Endpoint> servers,
                                          std::uint16_t local_port,
                                          const RetransmissionRule& rule = stun_rule);
Expected<MappingFinding> find_mapping_tcp(const Io& io, Span<const platform::Endpoint> servers,
                                          std::uint16_t local_port, Duration limit_per_server);

}  // namespace neuroshard::nat
