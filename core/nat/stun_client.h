// Asks a STUN server at which address it sees this machine (RFC 8489), over UDP or TCP. Two servers show
// whether a NAT gives one outside port to all destinations (RFC 5780 §4.3, without its CHANGE-REQUEST: two
// servers with different addresses suffice). A server's answer is a claim: only a dial-back decides whether a
// port can be reached.
#pragma once

#include <optional>

#include "core/nat/io.h"
#include "core/nat/retransmission.h"
#include "core/nat/stun_message.h"
#include "core/platform/socket/udp_socket.h"

namespace neuroshard::nat {

// One Binding request over UDP, without a socket: when to send which datagram, and the meaning of an arriving
// one.
// Threads: one.
class BindingQuery {
 public:
  BindingQuery(const platform::Endpoint& server, crypto::Entropy& entropy, const RetransmissionRule& rule,
               MonotonicTime now);

  const platform::Endpoint& server() const { return server_; }
  // The datagram to send to server() now, if one is due.
  std::optional<ByteSpan> due(MonotonicTime now);
  MonotonicTime next() const { return retransmission_.next(); }
  // A datagram arrived. It changes nothing unless it is this server's answer to this request.
  void receive(ByteSpan datagram, const platform::Endpoint& from);
  // Nothing while the request is open; then the outside endpoint, or Timeout, Unavailable (the server
  // refuses).
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
// The outside endpoint of a connection to the server, dialled with these `options`.
Expected<OutsideTcp> outside_endpoint_tcp(const Io& io, const platform::Endpoint& server,
                                          const platform::DialOptions& options, MonotonicTime deadline);

enum class Mapping {
  NoAnswer,             // no server answered: the protocol is blocked, or the servers are away
  None,                 // the outside address is this machine's own: no NAT
  OneServer,            // there is a NAT; one answer does not show its kind
  EndpointIndependent,  // the same outside port to everybody: others can punch through
  EndpointDependent,    // "symmetric": another outside port for each destination
};
std::string_view to_text(Mapping mapping);

struct MappingFinding {
  Mapping mapping = Mapping::NoAnswer;
  platform::Endpoint local;                   // the address that asked
  std::optional<platform::Endpoint> outside;  // as the first answering server saw it
  std::vector<Error> failures;                // one per server that did not answer
};
// Asks each server in turn from one local port. Errors are those of this machine (no socket), or Cancelled.
Expected<MappingFinding> find_mapping_udp(const Io& io, Span<const platform::Endpoint> servers,
                                          std::uint16_t local_port,
                                          const RetransmissionRule& rule = stun_rule);
Expected<MappingFinding> find_mapping_tcp(const Io& io, Span<const platform::Endpoint> servers,
                                          std::uint16_t local_port, Duration limit_per_server);

}  // namespace neuroshard::nat
