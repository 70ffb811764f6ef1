// A node's part in its network. Member wires four parts: Bootstrap finds first peers, TableMembership joins the hash
// table, Reachability finds out how others reach the node, Advertiser publishes the node's signed record. The node's
// protocols register their handlers in methods().
// Nothing fails for good: what can't be reached at the start is tried again for ever, with pauses that grow,
// and view() says what is going on.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "core/dht/dht_node.h"
#include "core/net/method_table.h"
#include "core/net/peer_pool.h"
#include "core/swarm/advertiser.h"
#include "core/swarm/bootstrap.h"
#include "core/swarm/member_context.h"
#include "core/swarm/path_transport.h"
#include "core/swarm/public_services.h"
#include "core/swarm/reachability.h"

namespace neuroshard::swarm {

struct MemberPeer {
  net::PeerView connection;
  Way way = Way::Direct;
  Traffic traffic;
  std::uint64_t memory_bytes = 0;  // as its record says; 0 = no record
  std::uint32_t tokens_per_second = 0;
  std::uint64_t upload = 0, download = 0;  // of its line, bytes per second; 0 = it has not measured
};

struct MemberView : ReachabilityView {
  bool relaying = false;                   // for others
  std::size_t relayed_nodes = 0;           // registered at this relay
  Traffic traffic;                         // with all peers, since the start
  std::uint64_t upload = 0, download = 0;  // this node's line, as its record says
  std::size_t known = 0;                   // nodes by their records
  std::uint64_t forged = 0;                // refused records that no honest node can have made
  std::size_t table = 0;                   // contacts of the hash table
  std::vector<SourceView> sources;
  std::vector<MemberPeer> peers;
};

class Member final : public net::PeerService {
 public:
  // Threads: the executor's, all members.
  Member(MemberServices services, MemberOptions options, std::uint64_t seed);
  ~Member() override;
  void start();

  MemberView view() const;
  // With all peers, since the start.
  Traffic traffic() const { return paths_.traffic()->sum(); }
  // The router's report, from the thread that asks it.
  void router_says(nat::RouterNews news) { reach_.router_says(std::move(news)); }
  // The record changes when slots differ from it, or a number differs by a tenth.
  void set_capacity(Capacity capacity) { advertiser_.set_capacity(std::move(capacity)); }
  // Another node dials this one again, now.
  void test_reach() { reach_.test_again(); }
  const net::NodeBook& book() const { return book_; }
  // Members keep their places in the book, and faults of their neighbours don't count against them.
  void set_members(std::function<bool(const net::NodeId&)> is_member);
  // Calls over the connections of the pool.
  net::PeerCaller& caller() { return pool_; }
  net::PeerPool& pool() { return pool_; }  // for streams
  // Where others dial the node, by its record; nothing: unknown, or nobody can dial it.
  std::optional<net::Contact> find(const net::NodeId& id) const;
  // Nodes that can be called, at most `most`, of many address groups: those that were reached before others.
  std::vector<net::Contact> some(std::size_t most);
  // For protocols beside the public services (core/rounds, core/exchange).
  net::MethodTable& methods() { return methods_; }
  dht::DhtNode& table() { return table_.table(); }
  // Another number: another table, in which nothing is published yet.
  std::uint64_t table_number() const { return table_.tables(); }
  // A first peer that was found elsewhere (core/rendezvous): dialled twice, eight such peers at a time.
  void suggest(const FirstPeer& peer) { bootstrap_.suggest(peer); }
  // Nobody is connected and the hash table is empty.
  bool alone() const { return bootstrap_.alone(); }
  // alone(), or those that are connected were found elsewhere and name nobody.
  bool seeks_others() const { return bootstrap_.seeks_others(); }
  // All first peers were tried; those that answered are trackers that know of no other node.
  bool knows_nobody() const { return bootstrap_.knows_nobody(); }
  // Where others dial this node, as one of them has verified.
  std::optional<platform::Endpoint> advertised() const { return reach_.advertised(); }
  // For the cache of the next run; those of an earlier one are among them.
  std::vector<CachedPeer> good_peers() const { return bootstrap_.good_peers(); }
  TrackerStatistics statistics() const { return tracker_.statistics(services_.clock.wall_now()); }

  void on_call(const net::Caller& from, net::Method method, Bytes request, net::Respond respond) override;
  void on_stream(const net::Caller& from, net::Method method,
                 std::shared_ptr<net::PeerStream> stream) override;

 private:
  MemberContext context();
  void advertise_endpoints();
  void on_dialable_changed();
  void upkeep();
  void keep_neighbours();
  void tell_conduct_who_is_known();

  const MemberServices services_;
  const MemberOptions options_;
  const net::NodeId id_;
  const std::uint64_t seed_;
  Rng rng_;
  net::NodeBook book_;
  net::DialGate gate_;
  PathTransport paths_;
  net::PeerPool pool_;
  Tracker tracker_;
  net::MethodTable methods_;
  const std::shared_ptr<net::RequestLimiter> public_calls_;
  Reachability reach_;
  Advertiser advertiser_;
  PublicAnswers answers_;
  TableMembership table_;
  Bootstrap bootstrap_;
  std::function<bool(const net::NodeId&)> is_member_;
  MonotonicTime neighbours_kept_{};
  std::unique_ptr<TimerHandle> timer_;
};

}  // namespace neuroshard::swarm
