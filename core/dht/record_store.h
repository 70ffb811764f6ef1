// The records that this member holds for others. Everything is bounded, so that a stranger costs a fixed
// amount of memory: publishers per key, publishers per key from one address group, records per publisher,
// records and bytes in total.
//
// When a key has all its publishers, a further one replaces one of the address group with most of them, if its
// own group has fewer by two. When the store is full, a record replaces the farthest one of the address group
// that holds the most bytes, if its own group would hold less than half of that. Else it replaces a farther one
// of a group that holds at least as much as its own.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <unordered_map>
#include <vector>

#include "core/base/clock.h"
#include "core/base/expected.h"
#include "core/dht/record.h"
#include "core/net/node_id.h"

namespace neuroshard::dht {

struct StoreLimits {
  std::size_t publishers_per_key = 64;
  std::size_t per_group_and_key = 8;  // publishers of one address group (platform::prefix_group)
  std::size_t per_publisher = 512;    // records
  std::size_t records = 10'000;
  std::size_t bytes = 16u << 20;
};

class RecordStore {
 public:
  // Threads: one.
  explicit RecordStore(const net::NodeId& self, StoreLimits limits = {}) : self_(self), limits_(limits) {}

  // Keeps a record that check_record() accepted; `key` is key_of(record.path), `group` its sender's address
  // group. Denied: an older or a second record of the same sequence. Exhausted: a limit, which the message
  // names. A refused record leaves the publisher's former one in place.
  Expected<void> put(const net::NodeId& key, Record record, std::uint64_t group, WallTime now);

  // Valid until the next put or drop_expired.
  std::vector<const Record*> find(const net::NodeId& key, WallTime now) const;
  void drop_expired(WallTime now);

  std::size_t records() const { return records_; }
  std::size_t bytes() const { return bytes_; }

 private:
  struct Held {
    Record record;
    std::uint64_t group = 0;
  };
  using Key = std::vector<Held>;  // never empty
  using Keys = std::map<net::NodeId, Key>;

  net::NodeId place(const net::NodeId& key) const;  // key XOR self: the map is sorted by distance
  Expected<void> make_place(const net::NodeId& at, const Record& record, std::uint64_t group);
  bool make_room(const net::NodeId& at, std::size_t bytes, std::uint64_t group);
  bool drop_one(const net::NodeId& at, std::size_t bytes, std::uint64_t group);
  void add(const net::NodeId& at, Held held);
  Held take(Keys::iterator key, Key::iterator held);
  void forget(const Held& held);

  net::NodeId self_;
  StoreLimits limits_;
  Keys keys_;
  std::unordered_map<net::NodeId, std::size_t, net::NodeIdHash> per_publisher_;  // records, by public key
  std::unordered_map<std::uint64_t, std::size_t> bytes_of_group_;
  std::size_t records_ = 0;
  std::size_t bytes_ = 0;
};

}  // namespace neuroshard::dht
