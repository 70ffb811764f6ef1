// The nodes of the network that this node knows, by their signed records: the newest record of each. Bounded:
// when the book is full, the record that expires first makes room.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "core/net/node_record.h"
#include "core/net/peer_caller.h"

namespace neuroshard::net {

class NodeBook {
 public:
  // Threads: one.
  explicit NodeBook(const Hash256& network_id, std::size_t most = 10'000)
      : network_id_(network_id), most_(most) {}
  const Hash256& network_id() const { return network_id_; }

  // Denied: check_node_record refuses the record, it is a replayed or an older one, or it differs from the
  // known one of the same sequence.
  Expected<void> put(const NodeRecord& record, WallTime now);
  const NodeRecord* find(const NodeId& id, WallTime now) const;  // valid until the next put or drop_expired
  std::vector<const NodeRecord*> all(WallTime now) const;
  void remove(const NodeId& id) { records_.erase(id); }
  void drop_expired(WallTime now);
  std::size_t size() const { return records_.size(); }
  // Refused records that never held (never_held); honest nodes pass none on.
  std::uint64_t forged() const { return forged_; }

 private:
  Hash256 network_id_;
  std::size_t most_;
  std::map<NodeId, NodeRecord> records_;
  std::uint64_t forged_ = 0;
};

}  // namespace neuroshard::net
