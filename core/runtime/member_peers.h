// The other members of a swarm as a chain asks for them: their addresses are those of their signed records.
#pragma once

#include <vector>

#include "core/chain/outbox.h"
#include "core/swarm/member.h"

namespace neuroshard::runtime {

class MemberPeers final : public chain::Peers {
 public:
  // The member outlives it.  Threads: the member's executor.
  explicit MemberPeers(swarm::Member& member) : member_(member) {}
  std::optional<net::Contact> find(const net::NodeId& id) override { return member_.find(id); }
  std::vector<net::Contact> some() override { return member_.some(contacts_at_a_time); }
  bool nobody() const override { return member_.knows_nobody(); }

 private:
  static constexpr std::size_t contacts_at_a_time = 8;
  swarm::Member& member_;
};

}  // namespace neuroshard::runtime
