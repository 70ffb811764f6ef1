// Publishes a node's slots in the hash table: /layers/{l} and /experts/{l}/{e} (docs/protocol/dht.md). A key
// is the set of its publishers, so the record has no content; /nodes/{id} has the node's address. Embedding
// and head have no keys. The table renews published records; a withdrawn record is found until it expires, an
// hour at most.
//
// A record costs a lookup and some twenty calls, so few are published at a time, and their number is bounded.
// A model with more slots publishes all layers, and each node a different choice of its experts, so that
// together they cover all.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "core/net/node_record.h"

namespace neuroshard::dht {
class DhtNode;
}

namespace neuroshard::swarm {

class SlotKeys {
 public:
  // With a node's shards and checkpoints, these stay below the limit of records per publisher at a member.
  static constexpr std::size_t most = 224;
  static constexpr std::size_t at_a_time = 8;

  // own: the node's id, for its choice among too many.  Threads: one, the table's.
  explicit SlotKeys(const net::NodeId& own) : own_(own) {}

  // The slots that the node holds and gives from now on, as in net::NodeRecord.
  void set(const std::vector<net::HeldSlot>& slots);
  // Withdraws slots that are no longer given, and publishes the next few. Call it every few seconds, with a
  // table that knows a node.
  void step(dht::DhtNode& table);
  // The table is a new one, without any record.
  void begin_anew() { published_.clear(); }

  // Paths that were given to the table.
  const std::set<std::string>& published() const { return published_; }

 private:
  net::NodeId own_;
  std::vector<net::HeldSlot> slots_;
  std::vector<std::string> wanted_;  // layers first
  std::set<std::string> published_;
};

}  // namespace neuroshard::swarm
