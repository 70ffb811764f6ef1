// A guest of a network: a client with a key of its own that connects to nodes and asks them, without being a
// member.
//
// Threads: the caller's, which is not the host's executor, unless a comment says otherwise. Calls block until
// the answer or its deadline.
#pragma once

#include <functional>
#include <future>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/lifetime.h"
#include "core/dht/dht_node.h"
#include "core/net/node_record.h"
#include "core/net/peer_channel.h"
#include "core/net/peer_pool.h"
#include "core/runtime/peer_host.h"
#include "core/swarm/path_transport.h"

namespace neuroshard::runtime {

struct GuestOptions {
  std::string profile;          // the network's: a built-in name or a file
  std::vector<std::string> at;  // trackers and nodes to ask; empty: those of the profile
  bool lan = false;             // a private network: private addresses count
};

// Gets texts about each attempt, for people.
using NoteFunction = std::function<void(std::string_view)>;

struct GuestNetwork {
  Hash256 id{};
  std::vector<net::Dial> sources;
};
// Errors: InvalidArgument (no profile, a wrong address), NotFound (the profile names nobody to ask).
Expected<GuestNetwork> guest_network(const GuestOptions& options, storage::FileEnv& files);

// A host that is no member. Errors: those of PeerHost::start.
Expected<std::unique_ptr<PeerHost>> start_guest(const GuestNetwork& network, const GuestOptions& options,
                                                const RuntimeServices& services);

// Calls `start` on the host's executor and waits until it calls back. Every call in core/net has a deadline.
template <class T>
T wait_for(PeerHost& host, const std::function<void(std::function<void(T)>)>& start) {
  auto promise = std::make_shared<std::promise<T>>();
  auto future = promise->get_future();
  host.run([&] { start([promise](T value) { promise->set_value(std::move(value)); }); });
  return future.get();
}

// The first source that answers, and the valid records of other nodes that it knows.
struct Acquaintance {
  net::Contact contact;
  net::Hello hello;
  std::vector<net::NodeRecord> records;
};
// Errors: that of the last source, Unavailable when there is none. note: gets the error of each source.
Expected<Acquaintance> get_acquainted(PeerHost& host, const GuestNetwork& network, const NoteFunction& note);

// The addresses of those nodes, and that of the source unless it is only a tracker.
std::vector<net::Contact> contacts_of(const Acquaintance& known);

// The connections of one guest: direct ones, and through relays to nodes that nobody can dial.
class GuestPaths {
 public:
  // The host outlives it.
  GuestPaths(PeerHost& host, const GuestNetwork& network, const GuestOptions& options,
             const Acquaintance& known);
  ~GuestPaths();

  // Nodes to ask: those of contacts_of(known), and others that are called through a relay.
  const std::vector<net::Contact>& contacts() const { return contacts_; }

  // ---- The host's executor, all below.
  net::PeerCaller& caller() { return *pool_; }
  // The address at which the record's node can be called; nothing: the record is invalid or has no usable
  // one.
  std::optional<net::Contact> learn(const net::NodeRecord& record);
  // The number of nodes that are connected now, but not directly.
  std::size_t relayed() const;

 private:
  PeerHost& host_;
  const bool one_lan_;
  net::NodeBook book_;
  std::vector<net::Contact> contacts_;
  std::unique_ptr<swarm::PathTransport> transport_;
  std::unique_ptr<net::PeerPool> pool_;
};

// The hash table as a client sees it.
class GuestTable {
 public:
  // Begins with those of contacts_of(known) that may be members of it. Unavailable: there are none, or none
  // of them answers. References outlive it.
  static Expected<std::unique_ptr<GuestTable>> open(PeerHost& host, const GuestNetwork& network,
                                                    const GuestOptions& options, const Acquaintance& known,
                                                    GuestPaths& paths);
  ~GuestTable();

  std::size_t known_members() const { return known_; }
  // ---- The host's executor, all below.
  dht::DhtNode& node() { return *node_; }
  // Finds the publishers of a path that can be called, by the address or relay in `known` or in the node's
  // own record. `found` as for exchange::FetchServices::find; it is not called after this has ended.
  void find_publishers(const std::string& path, const std::function<void(std::vector<net::Contact>)>& found);

 private:
  GuestTable(PeerHost& host, GuestPaths& paths) : host_(host), paths_(paths), contacts_(paths.contacts()) {}
  void locate(const net::NodeId& id, const std::function<void(std::vector<net::Contact>)>& found);

  PeerHost& host_;
  GuestPaths& paths_;
  std::vector<net::Contact> contacts_;
  std::size_t known_ = 0;
  std::unique_ptr<dht::DhtNode> node_;
  Lifetime lifetime_;
};

}  // namespace neuroshard::runtime
