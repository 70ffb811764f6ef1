// By which of its slots a node is found in the hash table: /layers/{l} and /experts/{l}/{e} (NETWORK.md,
// DHT). A key is the set of its publishers, so the record has no content; where the node is says
// /nodes/{id}. Embedding and head have no keys. The table renews what is published; what is withdrawn is
// found until the records end, an hour at most.
//
// A record costs a lookup and some twenty calls, so there are few at a time and a bound on all. Of a model
// with more slots all layers count, and of the experts each node takes others, so that together they tell of
// all.
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
  // With a node's shards and checkpoints these stay below what a member of the table keeps of one publisher.
  static constexpr std::size_t most = 224;
  static constexpr std::size_t at_a_time = 8;

  // own: the node's id, for its choice among too many.  Threads: one, the table's.
  explicit SlotKeys(const net::NodeId& own) : own_(own) {}

  // What the node holds and gives from now on, as net::NodeRecord has it.
  void set(const std::vector<net::HeldSlot>& slots);
  // Withdraws what is no longer given, and publishes the next few keys. To be called every few seconds, with
  // a table that knows somebody.
  void step(dht::DhtNode& table);
  // The table is another one now, which knows of no record.
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
