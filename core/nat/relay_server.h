// The splice relay: nodes that nobody can dial hold a reservation here, and callers reach them through it
// (relay_head.h). Bytes pass unread; what goes through them is end-to-end encrypted by the two nodes. One
// port, bounded by numbers for each prefix and in total, so that strangers cost little. The same port answers
// STUN Binding requests over TCP (RFC 8489 §6.2.2): who wants to punch needs the port that the world sees.
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
  // Of an address group (platform::prefix_group). The ones that callees open for their callers are not among
  // them once both are joined: `sessions_per_callee` bounds these.
  std::size_t connections_per_prefix = 64;
  std::size_t reservations = 128;
  std::size_t reservations_per_prefix = 8;
  std::size_t sessions_per_callee = 32;  // the running ones and those that wait for the callee
  Duration head_time = std::chrono::seconds(5);
  Duration accept_time = std::chrono::seconds(10);  // a caller waits this long for its callee
  Duration reservation_time = std::chrono::hours(1);
  Duration echo_time = std::chrono::seconds(30);     // a STUN client's connection, which keeps its mapping
  Duration ping_interval = std::chrono::seconds(8);  // a callee that hears none for 20 s goes elsewhere
  SpliceLimits session;
};

struct RelayCounters {
  std::uint64_t accepted = 0, over_limit = 0, bad_heads = 0, slow_heads = 0;
  std::uint64_t unknown_callees = 0, bad_tickets = 0, unanswered = 0;
  std::uint64_t sessions = 0, bytes = 0;
  std::uint64_t bindings = 0;  // STUN requests answered
};

// What passed between callers and callees: how long nothing more may pass, or an error: nothing at all any
// more, because the user's data is used up. On the thread that steps.
using RelayPace = std::function<Expected<Duration>(std::uint64_t bytes)>;

// Owns no thread: its owner calls step() again and again, on one thread; everything else may be called on
// any.
class RelayServer {
 public:
  // References must outlive it. Busy: the port is taken; Io.
  static Expected<std::unique_ptr<RelayServer>> open(const platform::Endpoint& local,
                                                     const RelayLimits& limits, const Clock& clock,
                                                     crypto::Entropy& entropy);

  // Without a port of its own: connections come by adopt().
  static std::unique_ptr<RelayServer> make(const RelayLimits& limits, const Clock& clock,
                                           crypto::Entropy& entropy);

  Expected<platform::Endpoint> local() const { return listener_.local(); }
  // A connection that another listener took; nothing of it has been read. A step() that waits takes no
  // notice: its owner wakes it (see step).
  void adopt(platform::TcpSocket socket, const platform::Endpoint& from);
  // Held against the user's limits from now on.  Threads: any; `pace` is not called once this returned with
  // another.
  void set_pace(RelayPace pace);
  // The right to be reached here as `callee`, once its key was proven (over mutual TLS, elsewhere); replaces
  // an earlier reservation of the same id. Exhausted: all places, or all of that prefix, are taken.
  Expected<RelayTicket> reserve(const Hash256& callee, const platform::IpAddress& from);
  void cancel(const Hash256& callee);

  // Waits at most `limit` for something to do, and does it; ends early when the descriptor `wake` can be
  // read. Errors: the listener is broken.
  Expected<void> step(Duration limit, int wake = -1);

  RelayCounters counters() const;
  std::size_t connections() const;
  std::size_t reservations() const;
  std::size_t joined() const;

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
    std::uint64_t prefix;  // the caller's
  };
  struct Reservation {
    RelayTicket ticket;
    std::uint64_t prefix;
    MonotonicTime until;
    std::uint64_t control = 0;  // id of the client; 0: not joined
    std::size_t sessions = 0;
  };
  using Clients = std::map<std::uint64_t, Client>;

  RelayServer(platform::TcpListener listener, const RelayLimits& limits, const Clock& clock,
              crypto::Entropy& entropy)
      : listener_(std::move(listener)), limits_(limits), clock_(clock), entropy_(entropy) {}

  std::size_t open_connections() const { return clients_.size() + 2 * sessions_.size(); }
  void drop_reservation(const Hash256& callee);
  void accept(MonotonicTime now);
  void admit(platform::TcpSocket socket, const platform::Endpoint& from, MonotonicTime now);
  // False: this client is over.
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
  MonotonicTime next(MonotonicTime until) const;
  void expire_reservations(MonotonicTime now);
  void release_prefix(std::uint64_t prefix);
  void end_session_of(const Hash256& callee);
  RelayTicket new_ticket();

  platform::TcpListener listener_;
  RelayLimits limits_;
  const Clock& clock_;
  crypto::Entropy& entropy_;
  mutable std::mutex mutex_;  // for all below; not held while waiting
  RelayCounters counters_;
  std::uint64_t last_id_ = 0;
  MonotonicTime deaf_until_{};  // no descriptors were left: not accepting for a moment
  Clients clients_;
  std::vector<Session> sessions_;
  RelayPace pace_;
  MonotonicTime paused_until_{};
  std::map<Hash256, Reservation> reservations_;
  std::unordered_map<std::uint64_t, std::size_t> open_by_prefix_;
};

}  // namespace neuroshard::nat
