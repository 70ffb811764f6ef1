// The transport as a member uses it: dials plainly where that leads to the node, and through a relay where
// the node's record says that one answers there for it. A relayed connection goes on over a direct one once
// that could be punched, or through the called node's own TURN server once that lets this one in: calls and
// streams from then on. What is said travels in the two nodes' mutual TLS
// either way. Counts what passes, by peer.
#pragma once

#include <cstdint>
#include <unordered_map>

#include "core/base/lifetime.h"
#include "core/nat/tunnels.h"
#include "core/net/node_book.h"
#include "core/net/peer_channel.h"
#include "core/swarm/puncher.h"

namespace neuroshard::swarm {

enum class Way : std::uint8_t {
  Direct,
  Punched,
  Turn,     // relayed by a TURN server that the called node's owner runs
  Relayed,  // by another node
};
std::string_view to_text(Way way);  // "direct", "punched", "turn", "relayed"

// Bodies of requests, answers and stream messages, without what carries them.
struct Traffic {
  std::uint64_t in = 0, out = 0;
};

class TrafficBook {
 public:
  static constexpr std::size_t max_peers = 4096;  // the others are counted in the sum only

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
  // All outlive it; tunnels may be null: then relayed nodes are not reached.  Threads: the executor's.
  PathTransport(net::PeerTransport& inner, nat::Tunnels* tunnels, const net::NodeBook& book,
                const Clock& clock);
  ~PathTransport() override;

  void connect(const net::Dial& to, Duration deadline, Connected done) override;
  void set_hello(net::Hello hello) override { inner_.set_hello(std::move(hello)); }
  const net::Hello& hello() const override { return inner_.hello(); }

  // Null: nothing is punched. Outlives the transport, or is taken back.
  void set_puncher(Puncher* puncher) { puncher_ = puncher; }
  // Punches where a relayed connection stands, both nodes can, and it was not tried lately.
  void punch_relayed();
  // Asks nodes that are reached through another node, and have a place at a TURN server of their own, to be
  // let in there, and goes on that way.
  void ask_for_turn_permissions();
  struct Own {
    bool one_lan = false;  // private addresses count
    bool dialled = false;  // this node's record says where: those with a TURN server let it in unasked
    std::optional<platform::Endpoint> seen_at;  // by the world
  };
  void set_own(const Own& own) { own_ = own; }
  // How the connection to this node runs now, if it was dialled at this endpoint; and where the other end is.
  struct Path {
    Way way = Way::Direct;
    platform::Endpoint at;
  };
  Path path_to(const net::NodeId& id, const platform::Endpoint& at) const;
  // How this node is dialled at this endpoint.
  Way way_to(const net::NodeId& id, const platform::Endpoint& at) const;
  // Where to dial the node of this record: directly if it can be, else at its TURN server or through its
  // relay. Nothing: it can't be.
  std::optional<net::Contact> contact_of(const net::NodeRecord& record, bool one_lan) const;
  const std::shared_ptr<TrafficBook>& traffic() const { return traffic_; }

 private:
  struct Try {  // of a better way
    bool under_way = false;
    MonotonicTime not_before{};
    Duration pause{0};
    void ended(bool well, MonotonicTime now, Duration first);
  };
  struct Relayed {  // a connection that began so
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
  void connect_through(const platform::Endpoint& relay, const net::NodeId& id, Duration deadline,
                       Connected done);
  // One of the two ways to a node with a place at a TURN server, and the other one if that fails.
  void connect_to_turned(const net::Dial& to, Duration deadline, Connected done);
  std::optional<platform::Endpoint> endpoint_of(const net::NodeId& id, net::Reach reach) const;
  Connected wrapping(const platform::Endpoint& dialled, const Path& path, Connected done);

  net::PeerTransport& inner_;
  nat::Tunnels* tunnels_;
  Puncher* puncher_ = nullptr;
  std::unordered_map<net::NodeId, Relayed, net::NodeIdHash> relayed_;
  const net::NodeBook& book_;
  const Clock& clock_;
  Own own_;
  std::shared_ptr<TrafficBook> traffic_ = std::make_shared<TrafficBook>();  // channels may outlive this
  Lifetime lifetime_;
};

}  // namespace neuroshard::swarm
