#include "core/net/peer_ranks.h"

#include <algorithm>
#include <utility>

namespace neuroshard::net {

PeerRank PeerRanks::of(const NodeId& id) const {
  const std::lock_guard lock(mutex_);
  PeerRank rank = PeerRank::Stranger;
  for (const Members* known : {&named_, &members_})
    if (const auto found = known->find(id); found != known->end()) rank = std::max(rank, found->second);
  return rank;
}

void PeerRanks::know(const std::vector<NodeId>& ids) {
  const std::lock_guard lock(mutex_);
  for (const NodeId& id : ids) named_.emplace(id, PeerRank::Known);
}

void PeerRanks::set_members(Members members) {
  const std::lock_guard lock(mutex_);
  members_ = std::move(members);
}

}  // namespace neuroshard::net
