#include "core/nat/stun_client.h"

#include <fmt/format.h>

namespace neuroshard::nat {
namespace {

using platform::Endpoint;
using platform::IpAddress;
using platform::SocketWait;
using platform::TcpSocket;
using platform::UdpSocket;

stun::TransactionId new_transaction(crypto::Entropy& entropy) {
  stun::TransactionId transaction{};
  entropy.fill(transaction);
  return transaction;
}

Bytes binding_request(const stun::TransactionId& transaction) {
  stun::MessageWriter writer(stun::Class::Request, stun::Method::Binding, transaction);
  return writer.add_fingerprint().bytes();
}

// The result in the answer to our request; nothing if it is another message.
std::optional<Expected<Endpoint>> read_answer(ByteSpan bytes, const stun::TransactionId& transaction) {
  const auto message = stun::Message::parse(bytes);
  if (!message.ok() || message->transaction() != transaction || message->method() != stun::Method::Binding)
    return std::nullopt;
  if (message->message_class() == stun::Class::Success) {
    const auto outside = message->mapped_address();
    if (outside && outside->port != 0) return Expected<Endpoint>(*outside);
    return Expected<Endpoint>(make_error(ErrorCode::Corrupt, "the STUN server's answer names no address"));
  }
  if (message->message_class() == stun::Class::Failure) {
    const auto failure = message->failure();
    return Expected<Endpoint>(
        make_error(ErrorCode::Unavailable,
                   fmt::format("the STUN server refuses with code {}", failure ? failure->code : 0)));
  }
  return std::nullopt;
}

IpAddress any_address(const Endpoint& server) {
  return server.ip.is_v4() ? IpAddress::v4(0, 0, 0, 0) : IpAddress{};
}

// Adds one more answer to the finding.
void add_answer(MappingFinding& finding, const Endpoint& outside) {
  if (!finding.outside) {
    finding.outside = outside;
    finding.mapping = outside == finding.local ? Mapping::None : Mapping::OneServer;
  } else if (finding.mapping == Mapping::OneServer || finding.mapping == Mapping::EndpointIndependent) {
    finding.mapping = outside == *finding.outside ? Mapping::EndpointIndependent : Mapping::EndpointDependent;
  } else if (finding.mapping == Mapping::None && outside != *finding.outside) {
    finding.mapping = Mapping::EndpointDependent;  // a NAT for some destinations only
  }
}

}  // namespace

BindingQuery::BindingQuery(const Endpoint& server, crypto::Entropy& entropy, const RetransmissionRule& rule,
                           MonotonicTime now)
    : server_(server),
      transaction_(new_transaction(entropy)),
      request_(binding_request(transaction_)),
      retransmission_(rule, now) {}

std::optional<ByteSpan> BindingQuery::due(MonotonicTime now) {
  if (answer_ || !retransmission_.due(now)) return std::nullopt;
  return ByteSpan(request_);
}

void BindingQuery::receive(ByteSpan datagram, const Endpoint& from) {
  if (!answer_ && from == server_) answer_ = read_answer(datagram, transaction_);
}

std::optional<Expected<Endpoint>> BindingQuery::result(MonotonicTime now) const {
  if (answer_) return answer_;
  if (!retransmission_.expired(now)) return std::nullopt;
  return Expected<Endpoint>(
      make_error(ErrorCode::Timeout, fmt::format("the STUN server {} did not answer {} requests over UDP",
                                                 to_text(server_), retransmission_.sent())));
}

Expected<Endpoint> outside_endpoint_udp(const Io& io, UdpSocket& socket, const Endpoint& server,
                                        const RetransmissionRule& rule) {
  BindingQuery query(server, io.entropy, rule, io.now());
  std::array<std::uint8_t, stun::max_message_bytes + 1> buffer;
  while (true) {
    if (const auto datagram = query.due(io.now())) NS_RETURN_IF_ERROR(socket.send_to(*datagram, server));
    SocketWait wait{socket.descriptor(), true, false, false};
    NS_ASSIGN_OR_RETURN(const bool ready, wait_until(io, Span<SocketWait>(&wait, 1), query.next()));
    if (ready) {
      NS_ASSIGN_OR_RETURN(const auto received, socket.receive(buffer));
      if (received) query.receive(ByteSpan(buffer.data(), received->size), received->from);
    }
    if (auto result = query.result(io.now())) return std::move(*result);
  }
}

Expected<OutsideTcp> outside_endpoint_tcp(const Io& io, const Endpoint& server,
                                          const platform::DialOptions& options, MonotonicTime deadline) {
  OutsideTcp outside;
  NS_ASSIGN_OR_RETURN(outside.connection, dial_until(io, server, options, deadline));
  const stun::TransactionId transaction = new_transaction(io.entropy);
  NS_RETURN_IF_ERROR(write_until(io, outside.connection, binding_request(transaction), deadline));
  std::array<std::uint8_t, stun::max_message_bytes> buffer;
  const MutableByteSpan header(buffer.data(), stun::header_bytes);
  NS_RETURN_IF_ERROR(read_all_until(io, outside.connection, header, deadline));
  NS_ASSIGN_OR_RETURN(const std::size_t size,
                      stun::message_size(ByteSpan(buffer.data(), stun::header_bytes)));
  NS_RETURN_IF_ERROR(read_all_until(
      io, outside.connection, MutableByteSpan(buffer).subspan(stun::header_bytes, size - stun::header_bytes),
      deadline));
  auto answer = read_answer(ByteSpan(buffer.data(), size), transaction);
  if (!answer) return make_error(ErrorCode::Corrupt, "the STUN server answered something else");
  NS_ASSIGN_OR_RETURN(outside.outside, std::move(*answer));
  return outside;
}

std::string_view to_text(Mapping mapping) {
  switch (mapping) {
    case Mapping::NoAnswer: return "no answer";
    case Mapping::None: return "no NAT";
    case Mapping::OneServer: return "a NAT of unknown kind";
    case Mapping::EndpointIndependent: return "endpoint-independent";
    case Mapping::EndpointDependent: return "endpoint-dependent (symmetric)";
  }
  return "?";
}

Expected<MappingFinding> find_mapping_udp(const Io& io, Span<const Endpoint> servers,
                                          std::uint16_t local_port, const RetransmissionRule& rule) {
  MappingFinding finding;
  if (servers.empty()) return finding;
  NS_ASSIGN_OR_RETURN(UdpSocket socket, UdpSocket::open({any_address(servers.front()), local_port}));
  NS_ASSIGN_OR_RETURN(finding.local, socket.local());
  for (const Endpoint& server : servers) {
    if (server.ip.is_v4() != servers.front().ip.is_v4()) continue;  // another IP version takes another path
    auto source = platform::source_address_towards(server);
    if (source.ok()) finding.local.ip = *source;
    auto outside = source.ok() ? outside_endpoint_udp(io, socket, server, rule) : std::move(source).error();
    if (outside.ok()) {
      add_answer(finding, *outside);
    } else if (outside.error().code == ErrorCode::Cancelled) {
      return std::move(outside).error();
    } else {
      finding.failures.push_back(std::move(outside).error());
    }
  }
  return finding;
}

Expected<MappingFinding> find_mapping_tcp(const Io& io, Span<const Endpoint> servers,
                                          std::uint16_t local_port, Duration limit_per_server) {
  MappingFinding finding;
  std::vector<TcpSocket> open;  // the first connection keeps its mapping while the second is made
  for (const Endpoint& server : servers) {
    if (server.ip.is_v4() != servers.front().ip.is_v4()) continue;
    const std::uint16_t port = open.empty() ? local_port : finding.local.port;
    auto outside = outside_endpoint_tcp(io, server, {Endpoint{any_address(server), port}, true},
                                        io.now() + limit_per_server);
    if (outside.ok()) {
      NS_ASSIGN_OR_RETURN(finding.local, outside->connection.local());
      add_answer(finding, outside->outside);
      open.push_back(std::move(outside->connection));
    } else if (outside.error().code == ErrorCode::Cancelled || outside.error().code == ErrorCode::Busy) {
      return std::move(outside).error();
    } else {
      finding.failures.push_back(std::move(outside).error());
    }
  }
  return finding;
}

}  // namespace neuroshard::nat
