// This node in the hash table: one of its members if the node can be dialled, else a client. Answers the table's
// methods and joins by contacts, at a pace that strangers can't raise. Threads: the executor's, all members.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "core/base/lifetime.h"
#include "core/dht/dht_node.h"
#include "core/net/method_table.h"
#include "core/swarm/advertiser.h"
#include "core/swarm/member_context.h"
#include "core/swarm/reachability.h"

namespace neuroshard::swarm {

class TableMembership {
 public:
  // joined: a join found members of the table. All outlive it.
  TableMembership(const MemberContext& context, net::MethodTable& methods, Advertiser& advertiser,
                  const Reachability& reach, std::function<void()> joined);

  dht::DhtNode& table() { return *table_; }
  const dht::DhtNode& table() const { return *table_; }
  bool is_empty() const { return table_->table().size() == 0; }
  // How many tables there were so far.
  std::uint64_t tables() const { return tables_; }
  // Starts a new table: as one of its members if the node can be dialled now.
  void replace();
  // At once while the table is empty; later with other contacts if the last join was a moment ago.
  void join_by(const std::vector<net::Contact>& contacts);

 private:
  void join();

  const MemberContext context_;
  Advertiser& advertiser_;
  const Reachability& reach_;
  const std::function<void()> joined_;
  std::unique_ptr<dht::DhtNode> table_;
  std::uint64_t tables_ = 0;
  std::size_t known_ = 0;              // members of it that the last search found
  std::vector<net::Contact> waiting_;  // for the next join
  MonotonicTime due_{};                // the next join
  std::unique_ptr<TimerHandle> timer_;
  Lifetime lifetime_;
  net::MethodTable::Registration methods_;
};

}  // namespace neuroshard::swarm
