#include "core/chain/vouching.h"

#include <algorithm>

#include "core/crypto/hash.h"
#include "core/crypto/keys.h"
#include "core/platform/socket/subnet.h"

namespace neuroshard::chain {
namespace {

// The chain takes serials out of order within a window only, so the nodes of a large wallet share serials.
constexpr std::uint32_t most_serial_shares = 8;

// A node gives the serials that leave the remainder `rank` when divided by `nodes`.
struct SerialShare {
  std::uint32_t nodes = 0, rank = 0;
};

// So two nodes of a wallet give no serial twice, though neither sees the other's unused vouchers.
SerialShare serial_share(const Registry& registry, const WalletRecord& wallet, const net::NodeId& id) {
  SerialShare share;
  for (const MemberRecord& member : registry.members()) {
    if (member.wallet != wallet.number) continue;
    if (member.id == id) share.rank = share.nodes;
    ++share.nodes;
  }
  share.nodes = std::clamp(share.nodes, 1u, most_serial_shares);
  share.rank %= share.nodes;
  return share;
}

}  // namespace

bool is_near(const platform::IpAddress& caller, bool loopback_counts) {
  return !platform::globally_routable(caller) && (loopback_counts || !platform::is_loopback(caller));
}

Vouching::Vouching(const ChainRules& rules, const crypto::KeyPair& key, const crypto::PublicKey& wallet,
                   std::function<void(std::uint32_t)> save)
    : rules_(rules), key_(key), wallet_(wallet), save_(std::move(save)) {}

void Vouching::begin(const Hash256& seed, std::uint32_t given) {
  seed_ = seed;
  given_ = given;
}

Expected<HeldVoucher> Vouching::give(const ChainTip& tip, std::uint64_t expires_ms) {
  const WalletRecord* wallet = tip.registry->wallet(wallet_);
  if (rules_.voters == VotersMode::Founders)
    return make_error(ErrorCode::Denied, "in this network only the founders vote");
  if (wallet == nullptr || !wallet->voter)
    return make_error(ErrorCode::Denied,
                      "only a wallet with a vote can let another one vote; this node's wallet has none yet");
  if (!wallet->is_trusted())
    return make_error(ErrorCode::Denied,
                      "nobody vouched for this node's wallet, so it can't vouch for others");
  // Another node of the wallet may have given some, or this one before its disk was restored.
  given_ = std::max(given_, wallet->highest_serial);
  const SerialShare share = serial_share(*tip.registry, *wallet, crypto::node_id(key_.public_key()));
  do {
    ++given_;
  } while (given_ % share.nodes != share.rank);
  save_(given_);
  Bytes serial;
  append_le(serial, given_);
  HeldVoucher held;
  held.secret = crypto::Sha256().update("neuroshard.voucher.v1").update(seed_).update(serial).finish();
  held.voucher.issuer = key_.public_key();
  held.voucher.key = crypto::KeyPair::from_seed(held.secret).public_key();
  held.voucher.serial = given_;
  held.voucher.expires_ms = expires_ms;
  sign_voucher(held.voucher, key_, rules_.network);
  return held;
}

void Vouching::candidate_is_near(const net::NodeId& id) {
  if (near_.size() < most_lan_candidates) near_.insert(id);
}

std::vector<std::pair<net::NodeId, HeldVoucher>> Vouching::offers(const ChainTip& tip) {
  const Registry& registry = *tip.registry;
  const WalletRecord* own = registry.wallet(wallet_);
  const bool may =
      rules_.voters != VotersMode::Founders && own != nullptr && own->voter &&
      (own->last_voucher_round == 0 || registry.round() >= own->last_voucher_round + voucher_pause);
  if (!may) return {};
  for (auto at = near_.begin(); at != near_.end();) {
    const MemberRecord* member = registry.find(*at);
    const WalletRecord* wallet = member != nullptr ? registry.wallet(member->wallet) : nullptr;
    if (wallet != nullptr && (wallet->vouched || wallet->voter || wallet->expelled)) {
      at = near_.erase(at);
    } else if (wallet == nullptr) {
      ++at;
    } else {
      auto held = give(tip, registry.time_ms() + lan_voucher_life_ms);
      if (!held.ok()) return {};
      const net::NodeId id = *at;
      near_.erase(at);
      return {{id, std::move(*held)}};
    }
  }
  return {};
}

}  // namespace neuroshard::chain
