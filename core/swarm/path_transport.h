// The transport of a member. It dials a node directly where that is possible, and through a relay where the
// node's record names one. A relayed connection later moves to a punched one, or to the called node's TURN
// server once that permits this node's address: later calls and streams use the better path. The two nodes'
// mutual TLS protects the data on every path. Counts traffic by peer, and notes in the book which endpoints
// answered.
#pragma once

#include <cstdint>
#include <unordered_map>

#include "core/base/executor.h"
#include "core/base/lifetime.h"
#include "core/nat/tunnels.h"
#include "core/net/dial_gate.h"
#include "core/net/mailbox.h"
#include "core/net/node_book.h"
#include "core/net/peer_channel.h"
#include "core/swarm/puncher.h"

namespace neuroshard::swarm {

enum class Way : std::uint8_t {
  Direct,
  Punched,
  Turn,     // through the TURN server of the called node's owner
  Relayed,  // through another node
};
std::string_view to_text(Way way);  // "direct", "punched", "turn", "relayed"

// Bodies of requests, answers and stream messages, without the protocols below.
struct Traffic {
  std::uint64_t in = 0, out = 0;
};

class TrafficBook {
 public:
  static constexpr std::size_t max_peers = 4096;  // a further one replaces that with the least traffic

  void count(const net::NodeId& peer, std::uint64_t in, std::uint64_t out);
  Traffic of(const net::NodeId& peer) const;
  const Traffic& sum() const { return sum_; }

 private:
  Traffic sum_;
  std::unordered_map<net::NodeId, Traffic, net::NodeIdHash> peers_;
};

class PathChannel;

class PathTransport final : public net::PeerTransport {
 public:
  // All outlive it; tunnels may be null: then it can't use relays.  Threads: the executor's.
  PathTransport(net::PeerTransport& inner, nat::Tunnels* tunnels, net::NodeBook& book, const Clock& clock);
  ~PathTransport() override;

  // Both outlive it. Endpoints that other nodes name are dialled as the gate allows, until their nodes answer
  // there. Without a gate nothing is limited.
  void set_gate(net::DialGate& gate, Executor& executor);

  // Also fails with Denied or Exhausted of the gate.
  void connect(const net::Dial& to, Duration deadline, Connected done) override;
  // To an endpoint that the user's configuration names: past the gate.
  void connect_given(const net::Dial& to, Duration deadline, Connected done);
  void set_hello(net::Hello hello) override { inner_.set_hello(std::move(hello)); }
  const net::Hello& hello() const override { return inner_.hello(); }

  // Null: nothing is punched. The puncher outlives the transport, or is withdrawn by null.
  void set_puncher(Puncher* puncher) { puncher_ = puncher; }
  // Punches for relayed connections whose two nodes can both punch, unless it was tried lately.
  void punch_relayed();
  // Asks relayed nodes with a TURN server of their own for permission to dial them there, and moves their
  // connections to it.
  void ask_for_turn_permissions();
  struct Own {
    bool one_lan = false;  // private addresses count
    bool dialled = false;  // this node's record has its address: TURN servers permit it without a request
    std::optional<platform::Endpoint> seen_at;  // by other nodes
  };
  void set_own(const Own& own) { own_ = own; }
  // The present path of the connection that was dialled at this endpoint, and the other end's address.
  struct Path {
    Way way = Way::Direct;
    platform::Endpoint at;
  };
  Path path_to(const net::NodeId& id, const platform::Endpoint& at) const;
  // How this node is dialled at this endpoint.
  Way way_to(const net::NodeId& id, const platform::Endpoint& at) const;
  // Where to dial the node of this record: directly if possible, else at its TURN server or through its
  // relay. Nothing: it can't be dialled.
  std::optional<net::Contact> contact_of(const net::NodeRecord& record, bool one_lan) const;
  // Whether a record's endpoint may be dialled at all.
  bool may_dial(const platform::Endpoint& at, bool one_lan) const;
  const std::shared_ptr<TrafficBook>& traffic() const { return traffic_; }

 private:
  struct Try {  // to move to a better path
    bool under_way = false;
    MonotonicTime not_before{};
    Duration pause{0};
    void ended(bool well, MonotonicTime now, Duration first);
  };
  struct Relayed {  // a connection that began relayed
    std::weak_ptr<PathChannel> channel;
    Try punch, turn;
  };
  static constexpr std::size_t max_relayed = 1024;

  void keep_relayed(const net::NodeId& id, const std::shared_ptr<PathChannel>& channel);
  void punch(const net::NodeId& id, const std::shared_ptr<PathChannel>& channel);
  void tried(const net::NodeId& id, Try Relayed::*what, bool well);
  void ask_for_turn_permission(const net::NodeId& id, const platform::Endpoint& at,
                               const std::shared_ptr<PathChannel>& channel);
  void switch_to_turn(const net::NodeId& id, const platform::Endpoint& at,
                      const std::weak_ptr<PathChannel>& channel);
  // Whether the dial counts at the gate until the node answers. The gate's errors.
  Expected<bool> admit(const net::NodeId& id, const platform::Endpoint& at);
  void answered(const net::NodeId& id, const platform::Endpoint& at, bool counted);
  // given: past the gate, by the user's configuration.
  void connect_by_way(const net::Dial& to, Duration deadline, bool given, Connected done);
  // Counts at the gate only what it dials.
  void attempt(const net::Dial& to, const Path& path, bool given, Duration deadline, Connected done);
  void connect_through(const platform::Endpoint& relay, const net::NodeId& id, Duration deadline,
                       Connected done);
  // Dials a node with a place at a TURN server there or through its relay, and in the other way if that
  // fails.
  void connect_to_turned(const net::Dial& to, Duration deadline, bool given, Connected done);
  std::optional<platform::Endpoint> endpoint_of(const net::NodeId& id, net::Reach reach) const;
  Connected wrapping(const platform::Endpoint& dialled, const Path& path, bool counted, Connected done);

  net::PeerTransport& inner_;
  nat::Tunnels* tunnels_;
  Puncher* puncher_ = nullptr;
  std::unordered_map<net::NodeId, Relayed, net::NodeIdHash> relayed_;
  net::NodeBook& book_;
  net::DialGate* gate_ = nullptr;
  std::shared_ptr<net::Mailbox> refusals_;  // with the gate: of dials that it does not allow
  const Clock& clock_;
  Own own_;
  std::shared_ptr<TrafficBook> traffic_ = std::make_shared<TrafficBook>();  // channels may outlive this
  Lifetime lifetime_;
};

}  // namespace neuroshard::swarm
