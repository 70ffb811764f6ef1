// Kademlia's routing table (Maymounkov, Mazières 2002): buckets by shared prefix with the own id, k contacts
// each. A contact enters only after it answered a call at its address. A live contact is never replaced by a
// newer one, and each address group has only a few places. So a stranger can neither fill the table nor enter
// it by being named.
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "core/base/clock.h"
#include "core/net/node_id.h"
#include "core/net/peer_caller.h"

namespace neuroshard::dht {

struct TableLimits {
  std::size_t bucket = 20;  // k
  // The bucket of the other half of the id space; each next bucket has half as many, down to k. Most lookups
  // go to the first buckets, and among more contacts one is nearer. (Like libtorrent's extended table.)
  std::size_t farthest_bucket = 64;
  std::size_t spares = 8;            // per bucket: named by others, not yet verified
  std::size_t per_group_bucket = 2;  // contacts of one address group (platform::prefix_group)
  std::size_t per_group_table = 10;
  int failures_until_removed = 3;  // in a row
};

class RoutingTable {
 public:
  // Threads: one. one_lan: each address counts as its own group (a private network).
  RoutingTable(const net::NodeId& self, TableLimits limits, bool one_lan);

  // At its address.
  void answered(const net::Contact& contact, MonotonicTime now);
  // A call to it ended without saying anything about its address. It is not called again at once.
  void passed_over(const net::Contact& contact, MonotonicTime now);
  // Of this address: others may have named it.
  void failed(const net::Contact& contact);
  // Worth a call when its bucket has room.
  void heard_of(const net::Contact& contact);

  // Up to `count` contacts whose latest call succeeded, nearest to the target first.
  std::vector<net::Contact> closest(const net::NodeId& target, std::size_t count) const;

  // Contacts to call now, most urgent first: those whose latest call failed, spares of buckets with room,
  // those silent since `silent_before`.
  std::vector<net::Contact> to_check(std::size_t count, MonotonicTime silent_before) const;

  // The bucket with the oldest lookup, if that was before `since`; marks it as looked up now.
  std::optional<int> stale_bucket(MonotonicTime since, MonotonicTime now);

  // Estimated members of the whole network, from the distance of the nearest; at least the size of the table.
  double estimated_members() const;

  std::size_t size() const { return size_; }
  int depth() const { return static_cast<int>(buckets_.size()); }
  const net::NodeId& self() const { return self_; }

 private:
  struct Entry {
    net::Contact contact;
    MonotonicTime seen{};
    int failures = 0;
  };
  struct Bucket {
    std::vector<Entry> live;
    std::vector<net::Contact> spares;
    MonotonicTime looked_up = MonotonicTime::min();  // never
  };

  Bucket& bucket_of(const net::NodeId& id);
  std::size_t room(const Bucket& bucket) const;  // contacts that it may hold
  bool group_has_room(const Bucket& bucket, const net::Contact& contact) const;
  void insert(Bucket& bucket, const net::Contact& contact, MonotonicTime now);
  void remove(Bucket& bucket, std::vector<Entry>::iterator entry);

  net::NodeId self_;
  TableLimits limits_;
  bool one_lan_;
  std::vector<Bucket> buckets_;  // [shared bits]
  std::unordered_map<std::uint64_t, std::size_t> groups_;
  std::size_t size_ = 0;
};

}  // namespace neuroshard::dht
