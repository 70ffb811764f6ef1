// Vouchers that this node gives: to whom its person invites, and to candidates of its own local network where
// the network began as an open start. The key of a voucher follows from the beacon seed and the serial, so
// nothing else has to be kept.
//
// key outlives it. Threads: one. Errors: Denied (the wallet has no vote, or
// nobody vouched for it).
#pragma once

#include <functional>
#include <set>
#include <utility>
#include <vector>

#include "core/chain/history.h"
#include "core/chain/membership.h"
#include "core/platform/socket/ip_address.h"

namespace neuroshard::chain {

inline constexpr std::uint64_t lan_voucher_life_ms = 24ull * 3600 * 1000;
inline constexpr std::size_t most_lan_candidates = 64;

// Whether a caller is in the own local network. A caller that comes through a relay has a loopback address, so these count only
// where all nodes are known to be there.
bool is_near(const platform::IpAddress& caller, bool loopback_counts);

class Vouching {
 public:
  // save: keeps the number of vouchers that were given.
  Vouching(const ChainRules& rules, const crypto::KeyPair& key, const crypto::PublicKey& wallet,
           std::function<void(std::uint32_t given)> save);
  // The state from before a restart.
  void begin(const Hash256& seed, std::uint32_t given);

  Expected<HeldVoucher> give(const ChainTip& tip, std::uint64_t expires_ms);
  // A node of the local network asks to become a member.
  void candidate_is_near(const net::NodeId& id);
  // For the next candidate nearby that is a member now and has no voucher. One at a time: a wallet's vouchers
  // are used once in `voucher_pause` rounds.
  std::vector<std::pair<net::NodeId, HeldVoucher>> offers(const ChainTip& tip);

 private:
  const ChainRules& rules_;
  const crypto::KeyPair& key_;
  const crypto::PublicKey wallet_;
  const std::function<void(std::uint32_t)> save_;
  Hash256 seed_{};
  std::uint32_t given_ = 0;
  std::set<net::NodeId> near_;
};

}  // namespace neuroshard::chain
