#include "core/rounds/round_roles.h"

#include <algorithm>

#include "core/chain/rules.h"

namespace neuroshard::rounds {

bool computes_rows(const chain::Committee& committee, const net::NodeId& self) {
  return !committee.is_collected() || committee.position(self).has_value();
}

std::vector<net::NodeId> anchor_sources(const chain::Committee& committee, const net::NodeId& self,
                                        std::uint32_t row) {
  std::vector<net::NodeId> voters;
  for (const chain::CommitteeMember& voter : committee.members())
    if (voter.id != self && voter.rows.has(row)) voters.push_back(voter.id);
  if (voters.size() <= most_anchor_sources) return voters;
  const std::size_t first = (self[0] | self[1] << 8) % voters.size();
  std::rotate(voters.begin(), voters.begin() + static_cast<std::ptrdiff_t>(first), voters.end());
  voters.resize(most_anchor_sources);
  return voters;
}

std::size_t expected_members(const chain::Registry& registry, const ContributorLot& lot) {
  return static_cast<std::size_t>(std::count_if(
      registry.members().begin(), registry.members().end(), [&](const chain::MemberRecord& member) {
        const bool contributes = member.contributions > 0 && member.last_round + 2 >= registry.round();
        const bool is_new =
            member.contributions == 0 && registry.height() <= member.registered_height + new_for_blocks;
        return member.presence == chain::Presence::Active && (contributes || is_new) &&
               lot.takes(member.number);
      }));
}

std::size_t most_contributors(const chain::Registry& registry) {
  std::size_t taken = registry.voter_count() / 4;
  std::vector<std::uint8_t> voting(registry.wallets().size(), 0);  // nodes of each wallet
  for (const chain::MemberRecord& member : registry.members()) {
    if (member.presence != chain::Presence::Active) continue;
    const chain::WalletRecord* wallet = registry.wallet(member.wallet);
    std::uint8_t& nodes = voting[static_cast<std::size_t>(wallet - registry.wallets().data())];
    const bool votes = wallet->voter && member.can_share() && nodes < chain::voting_nodes_per_wallet;
    if (votes) ++nodes;
    if (votes || wallet->is_trusted()) ++taken;
  }
  return taken;
}

bool is_candidate(const chain::Registry& registry, std::uint32_t member) {
  const chain::MemberRecord* record = registry.find(member);
  if (record == nullptr) return true;
  const chain::WalletRecord& wallet = *registry.wallet(record->wallet);
  if (wallet.voter || wallet.is_trusted()) return false;
  if (!registry.closed()) return true;
  const auto& rows = registry.closed()->contributors;
  return std::none_of(rows.begin(), rows.end(), [member](const std::vector<std::uint32_t>& taken) {
    return std::binary_search(taken.begin(), taken.end(), member);
  });
}

std::size_t most_candidates_at_once(const chain::Registry& registry) {
  constexpr std::size_t least = 8;  // in a small network: else newcomers would wait for each other
  return std::max(least, registry.voter_count() / 4);
}

}  // namespace neuroshard::rounds
