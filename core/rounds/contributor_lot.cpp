#include "core/rounds/contributor_lot.h"

#include <algorithm>
#include <tuple>

#include "core/chain/beacon.h"

namespace neuroshard::rounds {
namespace {

struct Ticket {
  bool untrusted = false;
  Hash256 lot{};
  std::uint32_t member = 0;
  friend bool operator<(const Ticket& a, const Ticket& b) {
    return std::tie(a.untrusted, a.lot, a.member) < std::tie(b.untrusted, b.lot, b.member);
  }
};

}  // namespace

ContributorLot::ContributorLot(const chain::Registry& registry, std::size_t most) {
  if (registry.closed() || registry.members().size() <= most) return;
  std::vector<Ticket> tickets;
  std::vector<std::uint8_t> nodes(registry.wallets().size(), 0);  // of each wallet
  for (const chain::MemberRecord& member : registry.members()) {
    if (member.registered_height > registry.opening_height()) continue;
    const chain::WalletRecord* wallet = registry.wallet(member.wallet);
    std::uint8_t& before = nodes[static_cast<std::size_t>(wallet - registry.wallets().data())];
    const bool has_seat = (wallet->voter || wallet->is_trusted()) && before < chain::voting_nodes_per_wallet;
    if (has_seat)
      ++before;
    else
      tickets.push_back({!wallet->is_trusted(), {}, member.number});
  }
  if (tickets.size() <= most) return;
  for (Ticket& ticket : tickets)
    ticket.lot = chain::lot("contribution", registry.beacon(), registry.find(ticket.member)->id);
  const auto end = tickets.begin() + static_cast<std::ptrdiff_t>(most);
  std::nth_element(tickets.begin(), end, tickets.end());
  for (auto ticket = end; ticket != tickets.end(); ++ticket) left_out_.push_back(ticket->member);
  std::sort(left_out_.begin(), left_out_.end());
}

bool ContributorLot::takes(std::uint32_t member) const {
  return !std::binary_search(left_out_.begin(), left_out_.end(), member);
}

}  // namespace neuroshard::rounds
