// A command that asks somebody's network something: with a key made for it, it connects to nodes that it is
// told of, and takes no part.
#pragma once

#include <functional>
#include <future>
#include <memory>
#include <string>
#include <vector>

#include "app/node/command.h"
#include "app/node/peer_host.h"
#include "core/dht/dht_node.h"
#include "core/net/node_record.h"
#include "core/net/peer_channel.h"
#include "core/net/peer_pool.h"
#include "core/swarm/path_transport.h"

namespace CLI {
class App;
}

namespace neuroshard::app {

struct GuestFlags {
  std::vector<std::string> at;
  bool lan = false;
};
void add_guest_flags(CLI::App& command, GuestFlags& flags);

struct GuestNetwork {
  Hash256 id{};
  std::vector<net::Dial> sources;
};
// Of the profile that is named; `profile` else, a name or a file, "" for none. InvalidArgument, NotFound.
Expected<GuestNetwork> guest_network(const GuestFlags& flags, const std::string& profile,
                                     CommandContext& context);

Expected<std::unique_ptr<PeerHost>> start_guest(const GuestNetwork& network, const GuestFlags& flags,
                                                CommandContext& context);

// Starts something on the host's executor and waits for what it calls back with. Every call has a deadline of
// its own.
template <class T>
T wait_for(PeerHost& host, const std::function<void(std::function<void(T)>)>& start) {
  auto promise = std::make_shared<std::promise<T>>();
  auto future = promise->get_future();
  host.run([&] { start([promise](T value) { promise->set_value(std::move(value)); }); });
  return future.get();
}

// Whom the first source that answers is, and whom it knows: records that hold, without its own.
struct Acquaintance {
  net::Contact contact;
  net::Hello hello;
  std::vector<net::NodeRecord> records;
};
Expected<Acquaintance> get_acquainted(PeerHost& host, const GuestNetwork& network, CommandContext& context);

// Where those can be dialled, and the answering node itself unless it is a mere tracker.
std::vector<net::Contact> contacts_of(const Acquaintance& known);

// Connections that are kept for one command: plain ones, and through relays to nodes that nobody can dial.
class GuestPaths {
 public:
  // The host outlives it.
  GuestPaths(PeerHost& host, const GuestNetwork& network, const GuestFlags& flags, const Acquaintance& known);
  ~GuestPaths();

  // Nodes that may be asked: those of contacts_of(known), and others that are called through a relay.
  const std::vector<net::Contact>& contacts() const { return contacts_; }

  // The executor's, all below.
  net::PeerCaller& caller() { return *pool_; }
  // Where the node of this record can be called; nothing: the record does not hold, or nowhere.
  std::optional<net::Contact> learn(const net::NodeRecord& record);
  // Nodes that are connected now, but not directly.
  std::size_t relayed() const;

 private:
  PeerHost& host_;
  const bool one_lan_;
  net::NodeBook book_;
  std::vector<net::Contact> contacts_;
  std::unique_ptr<swarm::PathTransport> transport_;
  std::unique_ptr<net::PeerPool> pool_;
};

// The hash table as a client of it, for one command.
class GuestTable {
 public:
  // Begins with those of contacts_of(known) that may be members of it. Unavailable: there are none, or none
  // of them answers. References outlive it.
  static Expected<std::unique_ptr<GuestTable>> open(PeerHost& host, const GuestNetwork& network,
                                                    const GuestFlags& flags, const Acquaintance& known,
                                                    GuestPaths& paths);
  ~GuestTable();

  std::size_t known_members() const { return known_; }
  // The executor's, as all that is called on it.
  dht::DhtNode& node() { return *node_; }
  // Who has published under the path and can be called: at the address, or through the relay, that `known` or
  // the node's own record in the table says. `found` as for exchange::FetchServices::find. The executor's;
  // ends with this.
  void find_publishers(const std::string& path, const std::function<void(std::vector<net::Contact>)>& found);

 private:
  GuestTable(PeerHost& host, GuestPaths& paths) : host_(host), paths_(paths), contacts_(paths.contacts()) {}
  void locate(const net::NodeId& id, const std::function<void(std::vector<net::Contact>)>& found);

  PeerHost& host_;
  GuestPaths& paths_;
  std::vector<net::Contact> contacts_;
  std::size_t known_ = 0;
  std::unique_ptr<dht::DhtNode> node_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace neuroshard::app
