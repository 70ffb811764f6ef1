// A bounded number of places that callers take and give back: calls, streams, or bytes of requests. Caps per peer
// and per address group keep one caller from taking all of them. A part is kept for peers that are known, and a
// part of that for what moves the chain.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <unordered_map>

#include "core/net/peer_ranks.h"

namespace neuroshard::net {

struct SlotLimits {
  std::size_t all = 0;
  std::size_t per_peer = 0;
  std::size_t per_group = 0;    // of strangers of one address group (address_group.h); 0: no cap
  std::size_t for_known = 0;    // of `all`, strangers do not get these
  std::size_t for_control = 0;  // of `all` and beside for_known, only voters get these, for control messages
  std::size_t per_known_peer = 0;  // 0: per_peer
};

struct SlotUser {
  NodeId id{};
  std::uint64_t group = 0;
  PeerRank rank = PeerRank::Stranger;
  bool control = false;
};

// Threads: any, all members.
class SlotPool {
 public:
  explicit SlotPool(SlotLimits limits) : limits_(limits) {}
  // False: there is no room for this user; nothing is taken.
  bool take(const SlotUser& user, std::size_t count = 1);
  // Places that the same user took, with the same rank.
  void give_back(const SlotUser& user, std::size_t count = 1);
  std::size_t taken() const;

 private:
  std::size_t limit_for(const SlotUser& user) const;
  const SlotLimits limits_;
  mutable std::mutex mutex_;
  std::size_t taken_ = 0;
  std::unordered_map<NodeId, std::size_t, NodeIdHash> peers_;
  std::unordered_map<std::uint64_t, std::size_t> groups_;  // of strangers
};

}  // namespace neuroshard::net
