// The head of a connection at a relay's port, before its bytes become opaque. It is an HTTP/1.1 head, so any
// client that knows HTTP CONNECT (RFC 9110 §9.3.6), such as gRPC, can call through a relay:
//   CONNECT <id>[.<suffix>]:<port> HTTP/1.1   a caller wants the node with this id (64 hexadecimal digits)
//   JOIN <ticket> HTTP/1.1                    a callee with a reservation; the connection stays for control
//   ACCEPT <session> HTTP/1.1                 a callee takes one call
// The relay answers with a head: 200, or a refusal. Lines follow a JOIN: the relay sends "INVITE <session>
// <caller>" and "PING", the callee "PONG". All input is untrusted; reading makes bounded views and does not
// allocate.
#pragma once

#include <array>
#include <optional>
#include <string_view>

#include "core/base/bytes.h"
#include "core/platform/socket/ip_address.h"

namespace neuroshard::nat {

inline constexpr std::size_t max_head_bytes = 4096;
inline constexpr std::size_t max_head_lines = 64;
inline constexpr std::size_t max_control_line = 160;

// Identifies a reservation or a session; its holder may use it.
using RelayTicket = std::array<std::uint8_t, 16>;

struct RequestHead {
  std::string_view method, target;
  std::size_t size = 0;  // of the head; the relay does not read the bytes after it
};
// Nothing while the head is incomplete. Corrupt, as soon as it can't become one; Exhausted: it is too long.
Expected<std::optional<RequestHead>> parse_request_head(ByteSpan bytes);

struct ResponseHead {
  int status = 0;
  std::string_view reason;
  std::size_t size = 0;
};
Expected<std::optional<ResponseHead>> parse_response_head(ByteSpan bytes);

// The id in CONNECT's target. InvalidArgument.
Expected<Hash256> callee_in_target(std::string_view target);
// 32 hexadecimal digits. InvalidArgument.
Expected<RelayTicket> parse_relay_ticket(std::string_view text);

struct ControlLine {
  enum class Kind { Invite, Ping, Pong } kind = Kind::Ping;
  RelayTicket session{};      // Invite
  platform::Endpoint caller;  // Invite
  std::size_t size = 0;       // including its end
};
// Nothing while the line is incomplete.
Expected<std::optional<ControlLine>> parse_control_line(ByteSpan bytes);
std::string format_invitation(const RelayTicket& session, const platform::Endpoint& caller);

}  // namespace neuroshard::nat
