// The splice relay: nodes that nobody can dial hold a reservation here, and callers reach them through it
// (relay_head.h). The relay does not read the bytes, which the two nodes encrypt end to end. It has one port
// and limits for each prefix and in total, so that strangers cost little. The same port answers STUN Binding
// requests over TCP (RFC 8489 §6.2.2): a node needs its outside port for hole punching.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "core/crypto/entropy.h"
#include "core/nat/relay_head.h"
#include "core/nat/splice.h"

namespace neuroshard::nat {

struct RelayLimits {
  std::size_t connections = 1024;  // open at once, all kinds
  // Of an address group (platform::prefix_group). Connections that callees open for their callers don't count
  // once both are joined: `sessions_per_callee` bounds these.
  std::size_t connections_per_prefix = 64;
  std::size_t reservations = 128;
  std::size_t reservations_per_prefix = 8;
  std::size_t sessions_per_callee = 32;  // running ones and those that wait for the callee
  // Those of one group of callers among them; each loopback or private address is a group of its own.
  std::size_t sessions_per_callee_and_group = 8;
  Duration head_time = std::chrono::seconds(5);
  Duration accept_time = std::chrono::seconds(10);  // a caller waits this long for its callee
  Duration reservation_time = std::chrono::hours(1);
  Duration join_time = std::chrono::minutes(1);  // of a reservation that no connection has joined
  Duration echo_time =
      std::chrono::seconds(30);  // the life of a STUN client's connection, which keeps its mapping
  Duration ping_interval = std::chrono::seconds(8);  // a callee without one for 20 s leaves
  // Takes nobody, once the user's data is used up; twice as long each time in a row, an hour at most.
  Duration used_up_time = std::chrono::minutes(1);
  SpliceLimits session;
};

struct RelayCounters {
  std::uint64_t accepted = 0, over_limit = 0, bad_heads = 0, slow_heads = 0;
  std::uint64_t unknown_callees = 0, bad_tickets = 0, unanswered = 0;
  std::uint64_t sessions = 0, bytes = 0;
  std::uint64_t bindings = 0;  // STUN requests answered
};

// Called with the relayed bytes, on the thread that steps. Returns how long the relay must pause, or an error
// when the user's data is used up: the relay then ends all sessions and takes nobody for `used_up_time`.
using RelayPace = std::function<Expected<Duration>(std::uint64_t bytes)>;

// Owns no thread: its owner calls step() repeatedly, on one thread. All other members: any thread.
class RelayServer {
 public:
  // References must outlive it. Busy: the port is taken; Io.
  static Expected<std::unique_ptr<RelayServer>> open(const platform::Endpoint& local,
                                                     const RelayLimits& limits, const Clock& clock,
                                                     crypto::Entropy& entropy);

  // Without a port of its own: adopt() brings the connections.
  static std::unique_ptr<RelayServer> make(const RelayLimits& limits, const Clock& clock,
                                           crypto::Entropy& entropy);

  Expected<platform::Endpoint> local() const { return listener_.local(); }
  // A connection that another listener accepted, unread. A step() that waits does not notice it: its owner
  // wakes it (see step).
  void adopt(platform::TcpSocket socket, const platform::Endpoint& from);
  // Sets the user's limits.  Threads: any; the former `pace` is not called once this has returned.
  void set_pace(RelayPace pace);
  // Reserves a place for `callee`, which has proven its key (over mutual TLS, elsewhere). Replaces an earlier
  // reservation of this id. Exhausted: all places, or all of its prefix, are taken, or the user's data is used
  // up.
  Expected<RelayTicket> reserve(const Hash256& callee, const platform::IpAddress& from);
  void cancel(const Hash256& callee);

  // Waits at most `limit` for work, and does it; ends early when the descriptor `wake` is readable. Errors:
  // the listener is broken.
  Expected<void> step(Duration limit, int wake = -1);

  RelayCounters counters() const;
  std::size_t connections() const;
  std::size_t reservations() const;
  std::size_t joined() const;
  // It takes nobody now: the user's data was used up when bytes last passed.
  bool used_up() const;

 private:
  enum class Stage { Head, Control, Calling, Spliced, Echoed };
  struct Client {
    platform::TcpSocket socket;
    platform::Endpoint from;
    Stage stage = Stage::Head;
    Bytes in, out;
    MonotonicTime deadline;
    MonotonicTime ping{};
    Hash256 callee{};       // Control: itself; Calling: whom
    RelayTicket session{};  // Calling
  };
  struct Session {
    Splice splice;
    Hash256 callee;
    platform::IpAddress caller;
  };
  struct Reservation {
    RelayTicket ticket;
    std::uint64_t prefix;
    MonotonicTime until, join_until;
    std::uint64_t control = 0;  // id of the client; 0: not joined
  };
  using Clients = std::map<std::uint64_t, Client>;

  RelayServer(platform::TcpListener listener, const RelayLimits& limits, const Clock& clock,
              crypto::Entropy& entropy)
      : listener_(std::move(listener)), limits_(limits), clock_(clock), entropy_(entropy) {}

  std::size_t open_connections() const { return clients_.size() + 2 * sessions_.size(); }
  void drop_reservation(const Hash256& callee);
  void accept(MonotonicTime now);
  void admit(platform::TcpSocket socket, const platform::Endpoint& from, MonotonicTime now);
  // False: this client is finished.
  bool serve(std::uint64_t id, Client& client, const platform::SocketWait& wait, MonotonicTime now);
  static bool read(Client& client);
  bool head(std::uint64_t id, Client& client, MonotonicTime now);
  bool echo(Client& client, MonotonicTime now);
  bool connect(Client& client, std::string_view target, MonotonicTime now);
  bool join(std::uint64_t id, Client& client, std::string_view target, MonotonicTime now);
  bool accept_call(Client& client, std::string_view target, MonotonicTime now);
  bool control(Client& client, MonotonicTime now);
  static bool refuse(Client& client, std::string_view status);
  bool keep_time(Client& client, MonotonicTime now);
  void forget(Clients::iterator client);
  void step_sessions(Span<const platform::SocketWait> waits, MonotonicTime now);
  void stop_relaying(MonotonicTime now);
  MonotonicTime next(MonotonicTime until) const;
  void expire_reservations(MonotonicTime now);
  void release_prefix(std::uint64_t prefix);
  struct Calls {  // running ones and those that wait for the callee
    std::size_t all = 0, of_group = 0;
  };
  Calls calls_of(const Hash256& callee, const platform::IpAddress& caller) const;
  RelayTicket new_ticket();

  platform::TcpListener listener_;
  RelayLimits limits_;
  const Clock& clock_;
  crypto::Entropy& entropy_;
  mutable std::mutex mutex_;  // guards all members below; not held while waiting
  RelayCounters counters_;
  std::uint64_t last_id_ = 0;
  MonotonicTime deaf_until_{};  // no descriptors were left: accepts nothing until then
  Clients clients_;
  std::vector<Session> sessions_;
  RelayPace pace_;
  MonotonicTime paused_until_{};
  MonotonicTime used_up_until_{};
  Duration used_up_pause_{};  // the last one; 0: there was data since
  std::map<Hash256, Reservation> reservations_;
  std::unordered_map<std::uint64_t, std::size_t> open_by_prefix_;
};

}  // namespace neuroshard::nat
