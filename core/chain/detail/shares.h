// The division of the wallets' votes among their nodes (docs/protocol/chain.md): 12 units a wallet, in equal
// parts for its up to four longest-registered active nodes that may have a share. Pure functions of a
// registry.
#pragma once

#include <cstdint>
#include <vector>

#include "core/chain/registry.h"

namespace neuroshard::chain {

struct Share {
  std::uint32_t member = 0;  // number
  std::uint32_t wallet = 0;  // number
  std::uint32_t units = 0;
  bool trusted = false;  // a founder's or vouched wallet
  friend bool operator==(const Share&, const Share&) = default;
};

// Of all voters' active nodes, ascending by member.
std::vector<Share> all_shares(const Registry& registry);
// The same, as if those were active that have been dormant for less than `seen_window_ms`.
std::vector<Share> seen_shares(const Registry& registry);
// Keeps wallets that nobody vouched for only as long as they have less than a quarter of all units together,
// in the order of the beacon's lot. Without a trusted share nothing stays.
std::vector<Share> limited_shares(std::vector<Share> shares, const Registry& registry, const Hash256& beacon);
// The shares that count for the next block: the epoch's committee if there is one, within the limit.
std::vector<Share> voting_shares(const Registry& registry);

// Trusted voter wallets with a node that may have a share: active ones, and those that are active or have
// been dormant for less than `seen_window_ms`.
struct SeenWallets {
  std::uint64_t active = 0, seen = 0;
};
SeenWallets trusted_wallets_seen(const Registry& registry);

}  // namespace neuroshard::chain
