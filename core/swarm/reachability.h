// How other nodes reach this one: directly (verified by a dial-back, with the router's mapping), through the
// user's TURN server, through a relay, or over a punched connection. Keeps all of these while addresses,
// routers and relays change, and answers the methods Punch and LetIn.
// Threads: the executor's, all members.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/base/lifetime.h"
#include "core/net/method_table.h"
#include "core/swarm/member_context.h"
#include "core/swarm/puncher.h"
#include "core/swarm/reach_keeper.h"
#include "core/swarm/turn_ingress.h"

namespace neuroshard::swarm {

// The address of the TURN server's name (of one or more) for the next try; `tries`: the earlier ones. IPv4 comes
// first: the relayed address is of the same IP version as the server's, and most nodes have IPv4.
platform::Endpoint turn_server_at(std::vector<platform::Endpoint> addresses, std::size_t tries);

// A connected first peer or tracker (bootstrap.h).
struct FirstConnection {
  std::shared_ptr<net::PeerChannel> channel;
  bool tracker = false;
  bool busy = false;  // a request of the bootstrap is under way
};

struct ReachabilityView {
  bool reachable = false;  // another node has dialled this one
  bool tested = false;
  bool testing = false;
  std::optional<WallTime> tested_at;
  std::optional<platform::Endpoint> advertised, seen_at;
  std::string why_not;  // if it is not reachable
  nat::ReachabilityVerdict verdict;
  std::optional<platform::Endpoint> relay;  // through which others call this node
  std::string relay_trouble;
  std::string turn_server;                 // of the options
  std::optional<platform::Endpoint> turn;  // where others dial this node through that server
  std::string turn_trouble;
};

class Reachability {
 public:
  struct Events {
    // Whether the node can be dialled directly has changed. endpoints() and the hello have changed with it.
    std::function<void()> dialable_changed;
    // endpoints() or the hello have changed in another way.
    std::function<void()> endpoints_changed;
    std::function<std::vector<FirstConnection>()> first_connections;
  };

  // calls: the limit on requests that the public methods share (public_services.h). methods and the context
  // outlive it.
  Reachability(const MemberContext& context, net::MethodTable& methods,
               const std::shared_ptr<net::RequestLimiter>& calls, Events events);
  ~Reachability();

  // The node at the other end of this connection sees this one at this address. One of an IP version in which
  // this node does not listen counts only while nobody sees another one: it may still lead to a relay.
  void seen(const net::PeerChannel& by, const platform::Endpoint& at);
  // The connection has ended. The observation of its address group still counts while another first connection
  // belongs to that group.
  void gone(const net::PeerChannel& observer);
  // The router's report, from the thread that asks it.
  void router_says(nat::RouterNews news) { keeper_.router_says(std::move(news)); }
  // A dial-back by the node at the other end is due.
  bool due(const net::PeerChannel& observer) const;
  // Asks the node of this connection to dial back; `done` when the result is known, or another test runs.
  void verify_through(const std::shared_ptr<net::PeerChannel>& channel, const std::function<void()>& done);
  // Has a first peer dial back, if that is due.
  void verify_if_due();
  // The user asks for a new test of the router, the NAT and the dial-back.
  void test_again();
  // Chooses relays, the TURN server's peers and the STUN servers anew from the nodes that are known.
  void update_relays();
  // Offers the relay to others, or withdraws it, as there is data for them. Call it every few seconds.
  void update_relay_offer();
  // Tells the transport how others see this node.
  void update_own_path();

  bool tested() const { return keeper_.tested(); }
  const std::string& why_not() const { return keeper_.why_not(); }
  std::optional<platform::Endpoint> advertised() const { return keeper_.advertised(); }
  // This node relays for others: they can dial it, and the user's limits leave data for them.
  bool relays_for_others() const;
  // Where others reach this node; empty: nowhere, as far as is known.
  std::vector<net::NodeEndpoint> endpoints() const;
  ReachabilityView view() const;

 private:
  net::Hello own_hello() const;
  void listen_to_tunnels();
  void count_undialable();
  void on_reach_changed();
  void on_punchable_changed();
  void on_relay_changed(std::optional<platform::Endpoint> relay, std::string trouble);
  void on_turn_changed(std::optional<platform::Endpoint> at, std::string trouble);
  std::vector<platform::Endpoint> known_relays() const;
  void reserve_at(const platform::Endpoint& relay, const nat::Tunnels::Ticket& answer);
  void update_turn();
  void find_turn_server(const nat::Tunnels::Found& found);

  const MemberContext context_;
  const Events events_;
  ReachKeeper keeper_;
  // The connected observers that see this node at an address of an IP version in which it listens, and the others.
  std::set<ReachKeeper::Observer> dialable_;
  std::map<ReachKeeper::Observer, platform::Endpoint> undialable_;
  std::unique_ptr<Puncher> puncher_;  // null: no tunnels
  std::optional<platform::Endpoint> relay_, turn_;
  std::string relay_trouble_, turn_trouble_;
  std::size_t turn_tries_ = 0;  // of the server's name, since it gave a place
  bool has_relay_data_ = true;  // when it was last looked at
  TurnIngress turn_ingress_;
  Lifetime lifetime_;
  std::vector<net::MethodTable::Registration> methods_;
};

}  // namespace neuroshard::swarm
