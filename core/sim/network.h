// The simulated network: authenticated calls between hosts, with delay, loss, churn, partitions and NATs, all
// drawn from one seed. A lost message means a call that ends at its deadline, as a connection that stands
// still would. The first call between two hosts pays for a connection and its TLS handshake.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <unordered_map>
#include <vector>

#include "core/base/rng.h"
#include "core/net/peer_caller.h"
#include "core/sim/world.h"

namespace neuroshard::sim {

enum class Nat : std::uint8_t {
  None,       // public, or a port is mapped
  Cone,       // endpoint-independent mapping: two of them can be punched
  Symmetric,  // reached by a relay only, unless the other side is public
};

// How two hosts reach each other (NETWORK.md, reachability).
enum class Link : std::uint8_t { Direct, Punched, Relayed };
Link link_between(Nat a, Nat b);

struct NetworkOptions {
  double loss = 0;                                      // of each message, 0 … 1
  Duration least_delay = std::chrono::milliseconds(2);  // of a host's own access line, one way
  Duration most_delay = std::chrono::milliseconds(60);
  int handshake_round_trips = 2;             // TCP and TLS 1.3
  Duration idle = std::chrono::seconds(60);  // a connection is kept so long
  // Of each host's line, in each direction; 0: without limit. Messages pass a line one after the other.
  double bytes_per_second = 0;
  // Messages up to so many bytes don't wait for larger ones, as those of the real node
  // (net/limited_transport.h) and on its connections, which share a line; 0: all wait.
  std::size_t passes_by = 0;
  // The bytes that each host's line sends are counted in windows of this length (busiest_window); 0: not.
  Duration window{};
};

struct NetworkCounters {
  std::uint64_t calls = 0, lost = 0, refused = 0, bytes = 0, handshakes = 0;
};

using Host = std::uint32_t;
using Handler = std::function<void(const net::Caller& from, net::Method method, ByteSpan request,
                                   const net::Respond& respond)>;

class Network {
 public:
  Network(World& world, NetworkOptions options, std::uint64_t seed);
  ~Network();

  // Two hosts never share an endpoint. `handler` is called on the virtual clock.
  Host add(const net::NodeId& id, const platform::Endpoint& endpoint, Nat nat, Handler handler);
  net::PeerCaller& caller(Host host);
  void set_handler(Host host, Handler handler);
  // Offline: nothing arrives, and what was under way never does.
  void set_online(Host host, bool online);
  bool online(Host host) const;
  // Hosts of different parts do not hear each other. All start in part 0.
  void set_part(Host host, int part);
  // Of this host's line, in each direction, instead of NetworkOptions'; 0: that again.
  void set_line(Host host, double bytes_per_second);
  void set_loss(double loss) { options_.loss = loss; }
  // When the last byte that this host was given to send has left it.
  MonotonicTime sent_at(Host host) const;
  const NetworkCounters& counters() const { return counters_; }
  // The most bytes that a host's line has passed on in one window.
  double busiest_window(Host host) const;

 private:
  class HostCaller;
  struct Node;

  Duration one_way(const Node& a, const Node& b) const;
  Duration passing(const Node& line, std::size_t bytes) const;
  // Runs the event when the last byte is there, and `extra` later.
  void deliver(Node& from, Node& to, std::size_t bytes, Duration extra, std::function<void()> event);
  void note_busy(std::map<std::int64_t, Duration>& busy, MonotonicTime begins, MonotonicTime ends) const;
  bool lost(const Node& from, const Node& to);
  void call(Host from, const net::Contact& to, net::Method method, Bytes request, Duration deadline,
            net::CallDone done);

  World& world_;
  NetworkOptions options_;
  Rng rng_;
  // A large message to many is kept once while it is under way.
  std::shared_ptr<const Bytes> under_way(Bytes message);

  std::vector<std::unique_ptr<Node>> hosts_;
  std::unordered_multimap<std::size_t, std::weak_ptr<const Bytes>> large_;
  std::unordered_map<net::NodeId, Host, net::NodeIdHash> by_id_;
  NetworkCounters counters_;
};

}  // namespace neuroshard::sim
