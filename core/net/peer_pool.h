// Calls to peers by id and address, over connections that are kept: one per peer, opened when first needed,
// closed when idle. Everything is bounded. The pool does not redial a peer that could not be reached at once,
// and closes the connection of a banned one.
//
// The connection of a call that gets no answer is replaced. Its streams go on: they notice silence themselves.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "core/base/clock.h"
#include "core/base/executor.h"
#include "core/base/lifetime.h"
#include "core/net/ban_list.h"
#include "core/net/mailbox.h"
#include "core/net/peer_channel.h"

namespace neuroshard::net {

struct PoolLimits {
  // Known at the same time. An idle one without a connection makes room, else the one idle for longest.
  std::size_t peers = 512;
  std::size_t waiting_per_peer = 32;  // calls that wait for a connection
  std::size_t calls_per_peer = 24;    // in flight; fewer than the other end allows
  Duration connect = connect_deadline;
  Duration idle = std::chrono::seconds(60);
  Duration first_pause = std::chrono::seconds(1);  // after a failed connect; doubles
  Duration longest_pause = std::chrono::minutes(2);
};

// A peer that is connected or was dialled lately.
struct PeerView {
  NodeId id{};
  platform::Endpoint endpoint;
  bool connected = false;
  std::optional<Error> error;          // why it is banned, or why the latest connect failed
  std::optional<Duration> round_trip;  // smoothed (RFC 6298), of small requests with small answers
  std::uint64_t calls = 0, failures = 0;
  std::string program;
  PeerVersion version;
  std::uint64_t features = 0;
};

class PeerPool final : public PeerCaller {
 public:
  using Opened = std::function<void(Expected<std::shared_ptr<PeerStream>>)>;
  // All outlive the pool; bans may be null.  Threads: the executor's, all members.
  PeerPool(PeerTransport& transport, Executor& executor, const Clock& clock, PoolLimits limits = {},
           const BanList* bans = nullptr);
  ~PeerPool() override;

  void call(const Contact& peer, Method method, Bytes request, Duration deadline, CallDone done) override;
  CallPath path_to(const Contact& peer) const override;
  // Where the peer was dialled; nothing: it is not connected.
  std::optional<platform::Endpoint> connected_at(const NodeId& id) const;
  // A stream to the peer. Its connection stays open until the stream is destroyed or the peer is banned.
  void open(const Contact& peer, Method method, Duration patience, Opened done);

  std::vector<PeerView> peers() const;
  std::size_t connections() const;

 private:
  struct Peer;
  struct Waiting {  // for a connection
    platform::Endpoint at;
    MonotonicTime since{};
    PeerTransport::Connected done;
  };
  using Peers = std::unordered_map<NodeId, std::shared_ptr<Peer>, NodeIdHash>;

  // Like connect of the transport, but kept and shared.
  void connect(const Contact& peer, PeerTransport::Connected done);
  std::shared_ptr<Peer> find_or_make(const Contact& contact);
  bool make_room();
  std::optional<Error> ban_of(const NodeId& id) const;
  // Whether the peer may be called; if it may not, its connection and its streams end.
  std::optional<Error> refused(const NodeId& id);
  void dial(const std::shared_ptr<Peer>& peer);
  void connected(const std::shared_ptr<Peer>& peer, Expected<std::shared_ptr<PeerChannel>> result);
  // Leaves those in `failed` that named the address of the last dial or have waited for long, and dials for
  // the others.
  void dial_another(const std::shared_ptr<Peer>& peer, std::vector<Waiting>& failed);
  void start(const std::shared_ptr<Peer>& peer, const std::shared_ptr<PeerChannel>& channel, Method method,
             Bytes request, Duration deadline, CallDone done);
  void tidy();

  PeerTransport& transport_;
  Executor& executor_;
  const Clock& clock_;
  const PoolLimits limits_;
  const BanList* const bans_;
  const std::shared_ptr<Mailbox> results_;  // a full executor must lose none
  Peers peers_;
  std::unique_ptr<TimerHandle> timer_;
  Lifetime lifetime_;
};

}  // namespace neuroshard::net
