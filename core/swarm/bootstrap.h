// How a node enters its network: dials first peers and trackers, tells them who it is, asks them for other
// nodes, and names those to the hash table. A first peer that fails is dialled again for ever, with growing
// pauses and jitter; those of the cache of an earlier run take turns.
// Threads: the executor's, all members.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/lifetime.h"
#include "core/swarm/advertiser.h"
#include "core/swarm/member_context.h"
#include "core/swarm/reachability.h"
#include "core/swarm/table_membership.h"

namespace neuroshard::swarm {

struct SourceView {
  platform::Endpoint endpoint;  // of one with a name: the address that was dialled last
  std::string name;             // empty: it is known by its address
  bool connected = false;
  bool tracker = false;
  std::string state;  // what is going on, in words
};

class Bootstrap {
 public:
  // All outlive it.
  Bootstrap(const MemberContext& context, TableMembership& table, Advertiser& advertiser,
            Reachability& reach);
  ~Bootstrap();

  // Dials the first peers.
  void start();
  // A first peer that was found elsewhere (core/rendezvous): dialled twice, eight such peers at a time, one of a
  // public address group. While seeks_others(), it may replace one that has named nobody for a minute.
  void suggest(const FirstPeer& peer);
  // A node that called gave its record. A node without first peers takes it for one: it could not learn
  // otherwise whether others reach it.
  void introduced(const net::Caller& from, const net::NodeRecord& record);
  // First peers tell a node where they see it. While none is connected, a node that was reached becomes one, once a
  // minute. Call it every few seconds.
  void keep_one();
  // Records that `informant` gave; contacts are known to be in the hash table.
  void take_peers(const std::vector<net::NodeRecord>& records, const net::Caller& informant,
                  std::vector<net::Contact> contacts);

  // Gives this node's new record to the trackers, or to all first peers.
  void introduce_to_trackers();
  void introduce_to_all();

  // Joins the table by all nodes that are known.
  void join_table();

  void remember_good();
  std::vector<CachedPeer> good_peers() const { return good_.list(); }

  // Nobody is connected and the hash table is empty.
  bool alone() const;
  // alone(), or those that are connected were found elsewhere and name nobody. An honest node names itself.
  bool seeks_others() const;
  // All first peers were tried; those that answered are trackers that know of no other node.
  bool knows_nobody() const;
  // Where a connected first peer is. Another node may not have dialled it yet, so its record may say nothing.
  std::optional<net::Contact> connected(const net::NodeId& id) const;
  std::vector<FirstConnection> connections() const;
  std::vector<SourceView> view() const;

 private:
  struct Source;
  using Done = std::function<void(Expected<Bytes>)>;

  Source& add_source(const FirstPeer& peer);
  void add_cached();
  void next_cached(Source& source);
  bool give_up(Source& source, const Error& error);
  bool any_connected() const;
  bool may_dial(const net::NodeEndpoint& at) const;
  void try_source(Source& source);
  void dial(Source& source);
  void join_by(const std::vector<net::Contact>& contacts);
  void failed(Source& source, const Error& error);
  void ask(Source& source, net::Method method, Bytes request, Done done);
  void learn_address(Source& source);
  void introduce(Source& source);
  void note_registration(Source& source, const Expected<Bytes>& answer);
  void fetch_peers(Source& source);
  void beat(Source& source);
  std::unique_ptr<TimerHandle> later(Duration delay, std::function<void()> task);

  const MemberContext context_;
  TableMembership& table_;
  Advertiser& advertiser_;
  Reachability& reach_;
  GoodPeers good_;
  std::deque<FirstPeer> spares_;  // of the cache, not dialled now
  std::size_t untried_ = 0;       // of them
  std::vector<std::unique_ptr<Source>> sources_;
  MonotonicTime one_due_{};  // of keep_one()
  Lifetime lifetime_;
};

}  // namespace neuroshard::swarm
