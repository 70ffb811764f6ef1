// How much this node trusts a caller with its resources. Limits leave a reserve to members, and what is scarce is
// taken from strangers first. A rank gives no right: every protocol checks its messages itself.
#pragma once

#include <cstdint>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "core/net/node_id.h"

namespace neuroshard::net {

enum class PeerRank : std::uint8_t {
  Stranger,
  Known,  // an active member that was vouched for or did certified work, or a peer that the user has named
  Voter,  // its votes move the chain
};

// Threads: any, all members.
class PeerRanks {
 public:
  using Members = std::unordered_map<NodeId, PeerRank, NodeIdHash>;

  PeerRank of(const NodeId& id) const;
  // Peers that the user has named: Known at least, for good.
  void know(const std::vector<NodeId>& ids);
  // The members now; they replace those before.
  void set_members(Members members);

 private:
  mutable std::mutex mutex_;
  Members named_, members_;
};

}  // namespace neuroshard::net
