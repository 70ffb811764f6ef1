// A member or a client of the distributed hash table: Kademlia (Maymounkov, Mazières 2002) over authenticated
// calls, with disjoint lookup paths (S/Kademlia). A member can be dialled, holds records and answers; a
// client, behind a NAT, only asks and publishes. Only its owner publishes a record, and publishes it again at
// half its life. docs/protocol/dht.md describes the defences; each header gives its limits.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/base/clock.h"
#include "core/base/executor.h"
#include "core/base/lifetime.h"
#include "core/base/rng.h"
#include "core/crypto/keys.h"
#include "core/dht/lookup.h"
#include "core/dht/record_store.h"
#include "core/dht/routing_table.h"
#include "core/net/method_table.h"
#include "core/net/peer_caller.h"

namespace neuroshard::dht {

struct DhtConfig {
  std::uint16_t member_port = 0;  // where this node answers; 0 = a client
  bool one_lan = false;           // a private network: private addresses, and many nodes of one range
  TableLimits table;
  StoreLimits store;
  LookupOptions lookup;
  std::size_t replicas = 20;     // members that get a record: k
  std::size_t max_lookups = 64;  // in progress at the same time
  std::size_t max_published = 1024;
  std::size_t most_renewed = 20;  // in one upkeep, so that renewals spread out
  Duration call_deadline = std::chrono::seconds(2);
  Duration record_life = std::chrono::seconds(3600);
  Duration upkeep = std::chrono::seconds(30);  // between two upkeeps
  std::size_t checks = 4;                      // contacts called in one upkeep, and some for each known
  Duration silent = std::chrono::minutes(15);  // a contact that is silent for so long is called
  Duration refresh = std::chrono::hours(1);    // a bucket without a lookup for so long gets one
};

struct DhtServices {  // all outlive the node
  const crypto::KeyPair& key;
  net::PeerCaller& caller;
  Executor& executor;
  const Clock& clock;
};

struct Published {
  std::size_t stored = 0;  // members that took the record
  std::size_t refused = 0;
  std::size_t messages = 0;
};

struct DhtCounters {
  std::uint64_t requests = 0, refused = 0, malformed = 0;
};

class DhtNode {
 public:
  // Threads: the executor's, all members.
  DhtNode(const Hash256& network_id, DhtConfig config, DhtServices services, std::uint64_t seed);
  ~DhtNode();

  // A first contact that this node's owner chose. The node joins anew by it, too, whatever contacts were named
  // since. A later address of the same node replaces it.
  void keep_given(const net::Contact& contact);

  // Calls these contacts, then looks up the own id, which fills the table. Call it again when other contacts
  // become known: some lookup paths begin there. `done` gets the number of known contacts. Never fails for
  // good: the caller tries again.
  void join(std::vector<net::Contact> contacts, std::function<void(std::size_t)> done);

  // InvalidArgument: the path. Exhausted: too many lookups in progress. NotFound is an empty list of records.
  void get(const std::string& path, std::function<void(Expected<LookupResult>)> done);
  // wide: over as many paths as a lookup may walk, for results that must be right at the first try.
  void find(const net::NodeId& target, std::function<void(Expected<LookupResult>)> done, bool wide = false);
  // Stores a record and renews it until withdraw(). A second record for the path replaces the first. If no
  // member takes it (unreachable, or at their limit for the key), it is tried again with growing pauses.
  void publish(const std::string& path, Bytes payload, std::function<void(Expected<Published>)> done);
  void withdraw(const std::string& path);

  // A peer's request, within the limits of its method (net/method_table.h); the connection has proven `from`.
  void handle(const net::Caller& from, net::Method method, ByteSpan request, const net::Reply& reply);

  const net::NodeId& id() const { return id_; }
  const RoutingTable& table() const { return table_; }
  const RecordStore& store() const { return store_; }
  const DhtCounters& counters() const { return counters_; }

 private:
  struct Owned {
    Bytes payload;
    MonotonicTime due{};
    WallTime expires{};  // of the record that was published last
    std::uint64_t sequence = 0;
    Duration pause{0};  // after failures: twice as long each time
  };
  struct Storing;
  struct Anchor {
    net::Contact contact;
    int failures = 0;  // calls in a row
  };

  void ask(const net::Contact& contact, net::Method method, Bytes request, net::CallDone done);
  void ping(const net::Contact& contact);
  void note(const net::Contact& contact, const Expected<Bytes>& answer);
  void answered(const net::Contact& contact);
  void failed(const net::Contact& contact);
  void keep_anchor(const net::Contact& contact);
  std::vector<net::Contact> first_contacts() const;
  void get_once(const std::string& path, std::function<void(Expected<LookupResult>)> done);
  void walk(const net::NodeId& target, net::Method method, LookupOptions options, const std::string& path,
            std::function<void(Expected<LookupResult>)> done);
  void store_at(std::shared_ptr<Storing> storing);
  void upkeep();
  void refill(MonotonicTime now);
  bool is_due(const Owned& owned, MonotonicTime now, WallTime wall_now) const;
  void publish_due(MonotonicTime now);
  net::Answer answer(const net::Caller& from, net::Method method, const Request& request);
  net::Answer keep(const net::Caller& from, Record record);
  net::NodeId random_id(int shared_with_us);

  Hash256 network_id_;
  DhtConfig config_;
  DhtServices services_;
  net::NodeId id_;
  Rng rng_;
  RoutingTable table_;
  RecordStore store_;
  DhtCounters counters_;
  std::vector<net::Contact> given_;          // by keep_given()
  std::vector<net::Contact> last_contacts_;  // of the last join, which a stranger may have caused
  std::size_t refilled_at_ = 0;              // contacts when the node last joined anew by all of them
  Duration refill_pause_{0};
  MonotonicTime refill_due_{};
  // The contacts of all joins that answered: known from outside the table.
  std::vector<Anchor> anchors_;
  std::map<std::string, Owned> owned_;
  std::unordered_map<std::uint64_t, std::shared_ptr<Lookup>> lookups_;
  std::uint64_t next_lookup_ = 1;
  std::unique_ptr<TimerHandle> timer_;
  Lifetime lifetime_;
};

}  // namespace neuroshard::dht
