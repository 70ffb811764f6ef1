#include "core/nat/relay_client.h"

#include <fmt/format.h>

#include "core/base/utf8.h"

namespace neuroshard::nat {
namespace {

using platform::Endpoint;
using platform::TcpSocket;

// A relay sends a line every 8 s; one that is silent for this long is gone.
constexpr Duration silence = std::chrono::seconds(20);
constexpr Duration accept_deadline = std::chrono::seconds(10);
constexpr int most_pings = 8;  // in a second

Error refused(int status, std::string_view reason) {
  const std::string words = fmt::format("the relay refuses: {} ({})", one_line(reason, 80), status);
  switch (status) {
    case 403: return make_error(ErrorCode::Denied, words);
    case 404: return make_error(ErrorCode::NotFound, words);
    case 503: return make_error(ErrorCode::Busy, words);
    case 504: return make_error(ErrorCode::Timeout, words);
    default: return make_error(ErrorCode::Unavailable, words);
  }
}

// Sends the request and reads the answer's head byte by byte: later bytes belong to the peer.
Expected<TcpSocket> ask(const Io& io, const Endpoint& relay, const std::string& request,
                        MonotonicTime deadline) {
  NS_ASSIGN_OR_RETURN(TcpSocket socket, dial_until(io, relay, {}, deadline));
  NS_RETURN_IF_ERROR(write_until(io, socket, as_bytes(request), deadline));
  Bytes head;
  while (true) {
    std::array<std::uint8_t, 1> byte{};
    NS_ASSIGN_OR_RETURN(const std::size_t count, read_until(io, socket, byte, deadline));
    head.insert(head.end(), byte.begin(), byte.begin() + static_cast<std::ptrdiff_t>(count));
    if (head.back() != '\n') continue;
    NS_ASSIGN_OR_RETURN(const auto response, parse_response_head(head));
    if (!response) continue;
    if (response->status != 200) return refused(response->status, response->reason);
    return socket;
  }
}

}  // namespace

Expected<RelayCallee> RelayCallee::join(const Io& io, const Endpoint& relay, const RelayTicket& ticket,
                                        MonotonicTime deadline) {
  RelayCallee callee(relay);
  NS_ASSIGN_OR_RETURN(callee.control_,
                      ask(io, relay, fmt::format("JOIN {} HTTP/1.1\r\n\r\n", to_hex(ticket)), deadline));
  callee.heard_ = io.now();
  return callee;
}

Expected<std::optional<RelayedCall>> RelayCallee::next(const Io& io, MonotonicTime until) {
  bool took = false;
  while (true) {
    if (io.cancel.cancelled()) return make_error(ErrorCode::Cancelled, "stopped");
    NS_ASSIGN_OR_RETURN(const auto line, parse_control_line(in_));
    if (line) {
      in_.erase(in_.begin(), in_.begin() + static_cast<std::ptrdiff_t>(line->size));
      NS_ASSIGN_OR_RETURN(auto call, take(io, *line));
      if (call) return call;
      took = true;
      continue;
    }
    if (took && io.now() >= until) return std::optional<RelayedCall>();  // `in_` holds no whole line now
    std::array<std::uint8_t, max_control_line> buffer{};
    NS_ASSIGN_OR_RETURN(const std::size_t count,
                        control_.read_some(MutableByteSpan(buffer.data(), buffer.size() - in_.size())));
    if (count > 0) {
      in_.insert(in_.end(), buffer.begin(), buffer.begin() + static_cast<std::ptrdiff_t>(count));
      heard_ = io.now();
      continue;
    }
    if (io.now() - heard_ > silence) return make_error(ErrorCode::Unavailable, "the relay has fallen silent");
    platform::SocketWait wait{control_.descriptor(), true, false, false};
    NS_ASSIGN_OR_RETURN(const bool ready, wait_until(io, Span<platform::SocketWait>(&wait, 1), until));
    if (!ready) return std::optional<RelayedCall>();
  }
}

Expected<std::optional<RelayedCall>> RelayCallee::take(const Io& io, const ControlLine& line) {
  const MonotonicTime now = io.now(), deadline = now + accept_deadline;
  if (line.kind != ControlLine::Kind::Invite) {
    if (now - pings_since_ >= std::chrono::seconds(1)) {
      pings_since_ = now;
      pings_ = 0;
    }
    if (++pings_ > most_pings) return make_error(ErrorCode::Unavailable, "the relay sends PING too often");
  }
  if (line.kind == ControlLine::Kind::Ping) {
    NS_RETURN_IF_ERROR(write_until(io, control_, as_bytes(std::string_view("PONG\r\n")), deadline));
    return std::optional<RelayedCall>();
  }
  if (line.kind != ControlLine::Kind::Invite) return std::optional<RelayedCall>();
  auto socket = ask(io, relay_, fmt::format("ACCEPT {} HTTP/1.1\r\n\r\n", to_hex(line.session)), deadline);
  if (socket.ok()) return std::optional<RelayedCall>({std::move(*socket), line.caller});
  // The caller gave up, or the relay is full: other calls go on.
  if (socket.error().code == ErrorCode::Cancelled) return std::move(socket).error();
  return std::optional<RelayedCall>();
}

Expected<TcpSocket> call_through_relay(const Io& io, const Endpoint& relay, const Hash256& callee,
                                       MonotonicTime deadline) {
  const std::string id = to_hex(callee);
  return ask(io, relay, fmt::format("CONNECT {0}:443 HTTP/1.1\r\nHost: {0}:443\r\n\r\n", id), deadline);
}

}  // namespace neuroshard::nat
