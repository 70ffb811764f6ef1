// Makes the node's signed record, with capacity, line speed and endpoints. Publishes the record and the
// node's slots in the hash table, and gives the record to other nodes. Threads: the executor's, all members.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "core/base/lifetime.h"
#include "core/dht/dht_node.h"
#include "core/swarm/member_context.h"
#include "core/swarm/reachability.h"
#include "core/swarm/slot_keys.h"

namespace neuroshard::swarm {

// The node's present capacity, as far as it is known; for its record.
struct Capacity {
  std::uint64_t memory_bytes = 0;
  std::uint32_t tokens_per_second = 0;
  std::vector<net::HeldSlot> slots;  // ordered as net/node_record.h requires
  bool gives = true;                 // serves its slots to others, who find it in the hash table by them
};

class Advertiser {
 public:
  // heard: records that another node gave in exchange for this one's. reach outlives the advertiser.
  using Heard = std::function<void(const std::vector<net::NodeRecord>&, const net::Caller& informant)>;
  Advertiser(const MemberContext& context, const Reachability& reach, Heard heard);

  const net::NodeRecord& record() const { return record_; }

  // Signs a record with the present time, capacity, line speed and features.
  void renew();
  // The record expires soon, or differs enough from what is known now.
  bool renewal_due() const;
  // Used by the next renew(), which renewal_due() asks for when the difference matters to others.
  void set_capacity(Capacity capacity);
  // Signs a record with these endpoints; no node counts as informed of it.
  void set_endpoints(std::vector<net::NodeEndpoint> endpoints);

  // Stores the record in the table, if the table knows a node.
  void publish(dht::DhtNode& table) const;
  // Publishes the next few slots. Call it every few seconds.
  void publish_slots(dht::DhtNode& table);
  // The table is a new one, which holds no record of this node.
  void table_replaced() { slot_keys_.begin_anew(); }

  // Where the node can be called is known, or that it can't be.
  bool is_placed() const;
  void note_informed(const net::NodeId& id) { told_[id].informed = true; }
  // Gives the record to the nodes that have not got it, one after the other and eight at most. They can call
  // this node before its next heartbeat.
  void introduce_itself();
  // Exchanges records with one node: one that has not got this node's record, else any. In turn one
  // that was reached, and one that was not. A node that did not answer is asked twice more.
  void exchange_records();

 private:
  bool capacity_changed() const;
  bool line_changed() const;
  bool delegation_expired() const;
  bool record_is_fresh() const;
  bool record_is_old() const;
  bool can_call(const net::NodeRecord& record) const;
  bool is_told(const net::NodeRecord& record, unsigned most_tries) const;
  bool all_were_tried() const;
  void exchange_records(unsigned most_tries);

  const MemberContext context_;
  const Reachability& reach_;
  const Heard heard_;
  net::NodeRecord record_;
  std::optional<Capacity> capacity_;
  SlotKeys slot_keys_;
  MonotonicTime record_made_{};
  struct Told {  // about the present endpoints
    bool informed = false;
    unsigned tries = 0;
  };
  std::map<net::NodeId, Told> told_;
  std::uint64_t placed_ = 0;       // sequence of the first record with these endpoints
  std::size_t introductions_ = 0;  // since the endpoints changed
  bool introducing_ = false;
  std::uint64_t exchanges_ = 0;
  Lifetime lifetime_;
};

}  // namespace neuroshard::swarm
