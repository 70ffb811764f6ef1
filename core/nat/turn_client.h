// A relayed TCP address at a TURN server (RFC 8656 with the TCP allocations of RFC 6062), for users who run
// or rent one: peers dial the relayed address, and this client takes their connections. A server accepts only
// peers whose IP address was permitted before. Long-term credentials (RFC 8489 §9.2) use SHA-1, as TURN
// servers expect.
#pragma once

#include <deque>
#include <map>
#include <optional>

#include "core/nat/io.h"
#include "core/nat/stun_message.h"

namespace neuroshard::nat {

struct TurnServer {
  platform::Endpoint endpoint;
  std::string username, password;  // the password is a secret: never logged
};

struct TurnCall {
  platform::TcpSocket socket;
  platform::Endpoint peer;  // the dialling peer, by the server's report
};

// One allocation; it ends when its control connection closes.  Threads: one.
class TurnClient {
 public:
  static constexpr Duration permission_time = std::chrono::seconds(300);  // RFC 8656 §9
  static constexpr std::size_t max_waiting_calls = 64;
  static constexpr std::size_t max_permitted_at_once = 16;

  // Denied: wrong credentials; Unsupported: no TCP allocations there; Exhausted: the server's quota; Timeout,
  // Unavailable.
  static Expected<TurnClient> allocate(const Io& io, TurnServer server, MonotonicTime deadline);

  const platform::Endpoint& relayed() const { return relayed_; }  // what peers dial
  const platform::Endpoint& outside() const { return outside_; }  // where the server sees this machine
  int descriptor() const { return control_.descriptor(); }        // readable when next() has work

  // Permits connections from these addresses, at most max_permitted_at_once, of the relayed address's IP
  // version; renew() keeps the permissions. Denied: the server's rules forbid one of them; none is permitted
  // then.
  Expected<void> permit(const Io& io, Span<const platform::IpAddress> peers, MonotonicTime deadline);
  // The same for any number, each address for itself: returns those that the rules forbid.
  Expected<std::vector<platform::IpAddress>> permit_each(const Io& io, Span<const platform::IpAddress> peers,
                                                         MonotonicTime deadline);
  bool permits(const platform::IpAddress& peer) const { return permitted_.count(peer) != 0; }
  void forbid(const platform::IpAddress& peer) { permitted_.erase(peer); }  // no longer renewed
  // When renew() has work: the allocation or a permission is past half its time.
  MonotonicTime next_renewal() const;
  Expected<void> renew(const Io& io, MonotonicTime deadline);
  // Renews the allocation now, which also shows that the server still answers.
  Expected<void> extend(const Io& io, MonotonicTime deadline);
  // Ends the allocation at the server now.
  Expected<void> release(const Io& io, MonotonicTime deadline);

  // Waits for a peer's connection until `until` and takes it; nothing when none came. Unavailable: the server
  // is gone, and the allocation with it.
  Expected<std::optional<TurnCall>> next(const Io& io, MonotonicTime until);
  // Dials a permitted peer from the relayed address. Unavailable: it can't be reached.
  Expected<platform::TcpSocket> connect(const Io& io, const platform::Endpoint& peer, MonotonicTime deadline);

 private:
  struct Attempt {
    std::uint32_t connection;
    platform::Endpoint peer;
  };
  explicit TurnClient(TurnServer server) : server_(std::move(server)) {}
  template <class Add>
  Expected<Bytes> ask(const Io& io, platform::TcpSocket& socket, Bytes& in, stun::Method method,
                      const Add& add, MonotonicTime deadline);
  Expected<void> adopt_challenge(const stun::Message& failure);
  void note_attempt(const stun::Message& message);
  Expected<void> refresh(const Io& io, std::uint32_t lifetime, MonotonicTime deadline);
  Expected<platform::TcpSocket> bind(const Io& io, std::uint32_t connection, MonotonicTime deadline);

  TurnServer server_;
  platform::TcpSocket control_;
  Bytes in_;  // of the control connection, after the last whole message
  std::string realm_;
  Bytes nonce_;
  std::optional<std::array<std::uint8_t, 16>> key_;
  platform::Endpoint relayed_, outside_;
  MonotonicTime refresh_at_{};
  std::map<platform::IpAddress, MonotonicTime> permitted_;  // and when each permission ends
  std::deque<Attempt> attempts_;
};

}  // namespace neuroshard::nat
