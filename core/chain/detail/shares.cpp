#include "core/chain/detail/shares.h"

#include <algorithm>
#include <array>
#include <map>

#include "core/chain/beacon.h"

namespace neuroshard::chain {
namespace {

// The position of a wallet among the registry's.
std::size_t position_of(const Registry& registry, std::uint32_t wallet) {
  return static_cast<std::size_t>(registry.wallet(wallet) - registry.wallets().data());
}

bool is_active(const MemberRecord& member) {
  return member.presence == Presence::Active;
}

template <class Counts>
std::vector<Share> shares_of(const Registry& registry, const Counts& counts) {
  // Members ascend by number, so the first four of a wallet are the longest-registered ones.
  std::vector<std::uint8_t> nodes(registry.wallets().size(), 0);
  std::vector<Share> shares;
  for (const MemberRecord& member : registry.members()) {
    if (!counts(member) || !member.can_share()) continue;
    const std::size_t at = position_of(registry, member.wallet);
    const WalletRecord& wallet = registry.wallets()[at];
    if (!wallet.voter || nodes[at] == voting_nodes_per_wallet) continue;
    ++nodes[at];
    shares.push_back({member.number, member.wallet, 0, wallet.is_trusted()});
  }
  for (Share& share : shares) share.units = units_per_wallet / nodes[position_of(registry, share.wallet)];
  return shares;
}

}  // namespace

std::vector<Share> all_shares(const Registry& registry) {
  return shares_of(registry, is_active);
}

std::vector<Share> seen_shares(const Registry& registry) {
  return shares_of(registry, [now = registry.time_ms()](const MemberRecord& member) {
    return is_active(member) || now - member.dormant_ms < seen_window_ms;
  });
}

std::vector<Share> limited_shares(std::vector<Share> shares, const Registry& registry,
                                  const Hash256& beacon) {
  std::uint64_t trusted = 0;
  std::map<std::uint32_t, std::uint64_t> others;  // units by wallet
  for (const Share& share : shares) {
    if (share.trusted) {
      trusted += share.units;
    } else {
      others[share.wallet] += share.units;
    }
  }
  if (others.empty()) return shares;
  std::vector<std::pair<Hash256, std::uint32_t>> order;
  for (const auto& [number, units] : others)
    order.emplace_back(lot("unvouched", beacon, crypto::node_id(registry.wallet(number)->key)), number);
  std::sort(order.begin(), order.end());
  // u < (t + u) / 4 is 3u < t.
  std::uint64_t untrusted = 0;
  for (const auto& [draw, number] : order) {
    const std::uint64_t units = others[number];
    if (3 * (untrusted + units) < trusted) {
      untrusted += units;
    } else {
      others.erase(number);
    }
  }
  std::erase_if(shares,
                [&others](const Share& share) { return !share.trusted && !others.contains(share.wallet); });
  return shares;
}

std::vector<Share> voting_shares(const Registry& registry) {
  std::vector<Share> shares = all_shares(registry);
  const std::vector<std::uint32_t>& drawn = registry.epoch_committee();
  if (!drawn.empty()) {
    std::erase_if(shares, [&drawn](const Share& share) {
      return !std::binary_search(drawn.begin(), drawn.end(), share.member);
    });
  }
  return limited_shares(std::move(shares), registry, registry.beacon());
}

SeenWallets trusted_wallets_seen(const Registry& registry) {
  enum : std::uint8_t { unseen, dormant, active };
  std::vector<std::uint8_t> state(registry.wallets().size(), unseen);
  for (const MemberRecord& member : registry.members()) {
    if (!member.can_share()) continue;
    const std::size_t at = position_of(registry, member.wallet);
    if (!registry.wallets()[at].voter || !registry.wallets()[at].is_trusted()) continue;
    if (member.presence == Presence::Active) {
      state[at] = active;
    } else if (registry.time_ms() - member.dormant_ms < seen_window_ms) {
      state[at] = std::max<std::uint8_t>(state[at], dormant);
    }
  }
  SeenWallets count;
  for (const std::uint8_t one : state) {
    count.active += one == active;
    count.seen += one != unseen;
  }
  return count;
}

}  // namespace neuroshard::chain
