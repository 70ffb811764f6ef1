#include "core/nat/turn_client.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/check.h"

namespace neuroshard::nat {
namespace {

using platform::Endpoint;
using platform::TcpSocket;
using stun::Attribute;
using stun::Message;
using stun::MessageWriter;
using stun::Method;

constexpr std::uint32_t transport_tcp = 6u << 24;  // REQUESTED-TRANSPORT: the protocol's number, three zeros
constexpr std::uint32_t allocation_seconds = 600;
constexpr std::size_t max_realm = 763, max_nonce = 763;  // RFC 8489 §14.9, §14.10
constexpr int max_tries = 3;                             // without credentials, with them, with a newer nonce
constexpr int max_other_messages = 256;                  // before the answer, from a server that floods
constexpr Duration bind_deadline = std::chrono::seconds(10);

Error refusal(int code) {
  switch (code) {
    case 401: return make_error(ErrorCode::Denied, "the TURN server does not accept this name and password");
    case 403: return make_error(ErrorCode::Denied, "the TURN server's rules forbid this peer");
    case 442: return make_error(ErrorCode::Unsupported, "this TURN server relays no TCP (RFC 6062)");
    case 447: return make_error(ErrorCode::Unavailable, "the TURN server can't reach the peer");
    case 486:
    case 508: return make_error(ErrorCode::Exhausted, "the TURN server has no place left for this user");
    default:
      return make_error(ErrorCode::Unavailable, fmt::format("the TURN server refuses with code {}", code));
  }
}

Error corrupt(const char* what) {
  return make_error(ErrorCode::Corrupt, fmt::format("the TURN server's answer {}", what));
}

// The next whole message from the stream; nothing when `until` comes first. `in` keeps an incomplete one.
Expected<std::optional<Bytes>> read_message(const Io& io, TcpSocket& socket, Bytes& in, MonotonicTime until) {
  while (true) {
    std::size_t wanted = stun::header_bytes;
    if (in.size() >= wanted) {
      NS_ASSIGN_OR_RETURN(wanted, stun::message_size(in));
      if (in.size() == wanted) return std::optional<Bytes>(std::exchange(in, {}));
    }
    // Never more than this message: later bytes may be the peer's.
    std::array<std::uint8_t, stun::max_message_bytes> buffer;
    NS_ASSIGN_OR_RETURN(const std::size_t count,
                        socket.read_some(MutableByteSpan(buffer.data(), wanted - in.size())));
    in.insert(in.end(), buffer.begin(), buffer.begin() + static_cast<std::ptrdiff_t>(count));
    if (count > 0) continue;
    platform::SocketWait wait{socket.descriptor(), true, false, false};
    NS_ASSIGN_OR_RETURN(const bool ready, wait_until(io, Span<platform::SocketWait>(&wait, 1), until));
    if (!ready) return std::optional<Bytes>();
  }
}

}  // namespace

Expected<void> TurnClient::adopt_challenge(const Message& failure) {
  const auto realm = failure.text(Attribute::Realm);
  const auto nonce = failure.find(Attribute::Nonce);
  if (!nonce || nonce->size() > max_nonce || (realm && realm->size() > max_realm))
    return corrupt("asks for credentials without a nonce, or with one that is too long");
  if (realm) realm_ = *realm;
  nonce_.assign(nonce->begin(), nonce->end());
  key_ = stun::long_term_key(server_.username, realm_, server_.password);
  return {};
}

void TurnClient::note_attempt(const Message& message) {
  const auto connection = message.number(Attribute::ConnectionId);
  const auto peer = message.xor_address(Attribute::XorPeerAddress);
  const bool is_attempt =
      message.message_class() == stun::Class::Indication && message.method() == Method::ConnectionAttempt;
  // The server drops those that are not taken within 30 s (RFC 6062 §5.3).
  if (is_attempt && connection && peer && attempts_.size() < max_waiting_calls)
    attempts_.push_back({*connection, *peer});
}

template <class Add>
Expected<Bytes> TurnClient::ask(const Io& io, TcpSocket& socket, Bytes& in, Method method, const Add& add,
                                MonotonicTime deadline) {
  int last_code = 0;
  for (int tried = 0; tried < max_tries; ++tried) {
    stun::TransactionId transaction{};
    io.entropy.fill(transaction);
    MessageWriter writer(stun::Class::Request, method, transaction);
    add(writer);
    const bool with_key = key_.has_value();
    if (with_key) {
      writer.add(Attribute::Username, server_.username)
          .add(Attribute::Realm, realm_)
          .add(Attribute::Nonce, nonce_);
      writer.sign_sha1(*key_);
    }
    NS_RETURN_IF_ERROR(write_until(io, socket, writer.bytes(), deadline));
    for (int others = 0;; ++others) {
      NS_ASSIGN_OR_RETURN(auto bytes, read_message(io, socket, in, deadline));
      if (!bytes) return make_error(ErrorCode::Timeout, "the TURN server does not answer");
      NS_ASSIGN_OR_RETURN(const Message message, Message::parse(*bytes));
      if (message.transaction() != transaction || message.method() != method) {
        note_attempt(message);
        if (others > max_other_messages) return corrupt("does not arrive among its other messages");
        continue;
      }
      if (message.message_class() == stun::Class::Success) {
        if (!key_ || !message.authentic(*key_)) return corrupt("is not signed with this user's password");
        return std::move(*bytes);
      }
      const auto failure = message.failure();
      if (message.message_class() != stun::Class::Failure || !failure) return corrupt("is no answer");
      last_code = failure->code;
      const bool challenge = (last_code == 401 && !with_key) || last_code == 438;
      if (!challenge) return refusal(last_code);
      NS_RETURN_IF_ERROR(adopt_challenge(message));
      break;
    }
  }
  return refusal(last_code);
}

Expected<TurnClient> TurnClient::allocate(const Io& io, TurnServer server, MonotonicTime deadline) {
  // A name that is too long for a message is a mistake in the settings, not the server's fault.
  if (server.username.empty() || server.username.size() > 508)
    return make_error(ErrorCode::InvalidArgument, "the TURN user's name must have 1 to 508 bytes");
  TurnClient client(std::move(server));
  NS_ASSIGN_OR_RETURN(client.control_, dial_until(io, client.server_.endpoint, {}, deadline));
  NS_ASSIGN_OR_RETURN(const Bytes answer, client.ask(
                                              io, client.control_, client.in_, Method::Allocate,
                                              [](MessageWriter& writer) {
                                                writer.add_number(Attribute::RequestedTransport,
                                                                  transport_tcp);
                                                writer.add_number(Attribute::Lifetime, allocation_seconds);
                                              },
                                              deadline));
  NS_ASSIGN_OR_RETURN(const Message message, Message::parse(answer));
  const auto relayed = message.xor_address(Attribute::XorRelayedAddress);
  const auto outside = message.mapped_address();
  const auto lifetime = message.number(Attribute::Lifetime);
  if (!relayed || !outside || !lifetime) return corrupt("names no relayed address");
  client.relayed_ = *relayed;
  client.outside_ = *outside;
  client.refresh_at_ = io.now() + std::chrono::seconds(std::max<std::uint32_t>(*lifetime, 2)) / 2;
  return client;
}

Expected<void> TurnClient::permit(const Io& io, Span<const platform::IpAddress> peers,
                                  MonotonicTime deadline) {
  NS_CHECK(!peers.empty() && peers.size() <= max_permitted_at_once);
  NS_RETURN_IF_ERROR(ask(
      io, control_, in_, Method::CreatePermission,
      [&](MessageWriter& writer) {
        for (const platform::IpAddress& peer : peers)
          writer.add_xor_address(Attribute::XorPeerAddress, {peer, 0});
      },
      deadline));
  for (const platform::IpAddress& peer : peers) permitted_[peer] = io.now() + permission_time;
  return {};
}

Expected<std::vector<platform::IpAddress>> TurnClient::permit_each(const Io& io,
                                                                   Span<const platform::IpAddress> peers,
                                                                   MonotonicTime deadline) {
  std::vector<platform::IpAddress> denied;
  for (std::size_t from = 0; from < peers.size(); from += max_permitted_at_once) {
    const auto some = peers.subspan(from, std::min(peers.size() - from, max_permitted_at_once));
    const auto together = permit(io, some, deadline);
    if (together.ok()) continue;
    if (together.error().code != ErrorCode::Denied) return together.error();
    // One of them is forbidden; the server does not name it.
    for (const platform::IpAddress& peer : some) {
      const auto alone = permit(io, {&peer, 1}, deadline);
      if (!alone.ok() && alone.error().code != ErrorCode::Denied) return alone.error();
      if (!alone.ok()) denied.push_back(peer);
    }
  }
  return denied;
}

MonotonicTime TurnClient::next_renewal() const {
  MonotonicTime next = refresh_at_;
  for (const auto& [peer, until] : permitted_) next = std::min(next, until - permission_time / 2);
  return next;
}

Expected<void> TurnClient::renew(const Io& io, MonotonicTime deadline) {
  if (io.now() >= refresh_at_) NS_RETURN_IF_ERROR(refresh(io, allocation_seconds, deadline));
  std::vector<platform::IpAddress> due;
  for (const auto& [peer, until] : permitted_)
    if (io.now() >= until - permission_time / 2) due.push_back(peer);
  NS_ASSIGN_OR_RETURN(const auto denied, permit_each(io, due, deadline));
  for (const platform::IpAddress& peer : denied) permitted_.erase(peer);  // the server's rules changed
  return {};
}

Expected<void> TurnClient::refresh(const Io& io, std::uint32_t lifetime, MonotonicTime deadline) {
  NS_ASSIGN_OR_RETURN(
      const Bytes answer,
      ask(
          io, control_, in_, Method::Refresh,
          [&](MessageWriter& writer) { writer.add_number(Attribute::Lifetime, lifetime); }, deadline));
  NS_ASSIGN_OR_RETURN(const Message message, Message::parse(answer));
  const std::uint32_t given = message.number(Attribute::Lifetime).value_or(lifetime);
  refresh_at_ = io.now() + std::chrono::seconds(std::max<std::uint32_t>(given, 2)) / 2;
  return {};
}

Expected<void> TurnClient::extend(const Io& io, MonotonicTime deadline) {
  return refresh(io, allocation_seconds, deadline);
}

Expected<void> TurnClient::release(const Io& io, MonotonicTime deadline) {
  const auto done = refresh(io, 0, deadline);
  control_.close();
  return done;
}

Expected<TcpSocket> TurnClient::bind(const Io& io, std::uint32_t connection, MonotonicTime deadline) {
  NS_ASSIGN_OR_RETURN(TcpSocket socket, dial_until(io, server_.endpoint, {}, deadline));
  Bytes in;
  NS_RETURN_IF_ERROR(ask(
      io, socket, in, Method::ConnectionBind,
      [&](MessageWriter& writer) { writer.add_number(Attribute::ConnectionId, connection); }, deadline));
  return socket;
}

Expected<TcpSocket> TurnClient::connect(const Io& io, const Endpoint& peer, MonotonicTime deadline) {
  NS_ASSIGN_OR_RETURN(
      const Bytes answer,
      ask(
          io, control_, in_, Method::Connect,
          [&](MessageWriter& writer) { writer.add_xor_address(Attribute::XorPeerAddress, peer); }, deadline));
  NS_ASSIGN_OR_RETURN(const Message message, Message::parse(answer));
  const auto connection = message.number(Attribute::ConnectionId);
  if (!connection) return corrupt("names no connection");
  return bind(io, *connection, deadline);
}

Expected<std::optional<TurnCall>> TurnClient::next(const Io& io, MonotonicTime until) {
  while (true) {
    while (!attempts_.empty()) {
      const Attempt attempt = attempts_.front();
      attempts_.pop_front();
      auto socket = bind(io, attempt.connection, io.now() + bind_deadline);
      if (socket.ok()) return std::optional<TurnCall>({std::move(*socket), attempt.peer});
      if (socket.error().code == ErrorCode::Cancelled) return std::move(socket).error();
      // This peer gave up; the others go on.
    }
    NS_ASSIGN_OR_RETURN(const auto bytes, read_message(io, control_, in_, until));
    if (!bytes) return std::optional<TurnCall>();
    NS_ASSIGN_OR_RETURN(const Message message, Message::parse(*bytes));
    note_attempt(message);
  }
}

}  // namespace neuroshard::nat
