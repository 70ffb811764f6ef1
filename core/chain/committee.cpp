#include "core/chain/committee.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "core/base/check.h"
#include "core/chain/ascending.h"
#include "core/chain/beacon.h"
#include "core/chain/detail/formats.h"
#include "core/chain/detail/shares.h"

namespace neuroshard::chain {
namespace {

Hash256 leader_draw(const Hash256& beacon, std::uint64_t height, const net::NodeId& id) {
  return tagged_hash("neuroshard/chain/leader/1", bytes_of(std::tie(beacon, height, id)));
}

}  // namespace

Committee::Committee(std::vector<CommitteeMember> members, VotersMode mode, const Hash256& beacon,
                     std::uint64_t height)
    : members_(std::move(members)), mode_(mode) {
  NS_CHECK(!members_.empty());
  std::vector<std::pair<Hash256, std::size_t>> order;
  for (std::size_t i = 0; i < members_.size(); ++i) {
    NS_CHECK(members_[i].units > 0 && (i == 0 || members_[i].number > members_[i - 1].number));
    units_ += members_[i].units;
    order.emplace_back(leader_draw(beacon, height, members_[i].id), i);
    by_id_.put(members_[i].id, static_cast<std::uint32_t>(i));
  }
  std::sort(order.begin(), order.end());
  leaders_.reserve(order.size());
  places_.resize(order.size());
  for (const auto& [draw, position] : order) {
    places_[position] = leaders_.size();
    leaders_.push_back(position);
  }
}

std::optional<std::size_t> Committee::position(std::uint32_t number) const {
  const CommitteeMember* member = find_by(members_, &CommitteeMember::number, number);
  if (member == nullptr) return std::nullopt;
  return static_cast<std::size_t>(member - members_.data());
}

std::vector<net::NodeId> Committee::others(const net::NodeId& self) const {
  std::vector<net::NodeId> ids;
  for (const CommitteeMember& member : members_)
    if (member.id != self) ids.push_back(member.id);
  return ids;
}

std::vector<net::NodeId> Committee::neighbours(const net::NodeId& self, std::size_t most) const {
  return by_id_.after(self, most);
}

std::optional<std::size_t> Committee::position(const net::NodeId& id) const {
  return by_id_.find(id);
}

std::uint32_t Committee::units_of(std::uint32_t number) const {
  const auto at = position(number);
  return at ? members_[*at].units : 0;
}

std::uint64_t Committee::units_holding(std::uint32_t row) const {
  std::uint64_t units = 0;
  for (const CommitteeMember& member : members_)
    if (member.rows.has(row)) units += member.units;
  return units;
}

bool Committee::is_stall_quorum(std::uint64_t units) const {
  return mode_ == VotersMode::Invited ? is_majority(units) : 8 * units > 5 * units_;
}

CommitteePtr make_committee(const ChainRules& rules, const Registry& registry) {
  std::vector<CommitteeMember> members;
  for (const Share& share : voting_shares(registry)) {
    const MemberRecord& member = *registry.find(share.member);
    members.push_back({member.number, share.units, member.key, member.id, member.rows});
  }
  return std::make_shared<const Committee>(std::move(members), rules.voters, registry.beacon(),
                                           registry.height() + 1);
}

std::uint64_t contributed_units(const CloseSection& close, const Committee& committee) {
  std::uint64_t units = 0;
  for (const ContributionEntry& entry : close.contributions) units += committee.units_of(entry.member);
  return units;
}

std::vector<std::uint32_t> draw_epoch(const Registry& registry, const Hash256& beacon) {
  const std::vector<Share> shares = limited_shares(all_shares(registry), registry, beacon);
  if (shares.size() <= max_committee) return {};
  std::vector<std::pair<Hash256, std::uint32_t>> order;
  order.reserve(shares.size());
  for (const Share& share : shares)
    order.emplace_back(lot("committee", beacon, registry.find(share.member)->id), share.member);
  std::sort(order.begin(), order.end());
  std::vector<std::uint32_t> drawn;
  drawn.reserve(max_committee);
  for (std::size_t i = 0; i < max_committee; ++i) drawn.push_back(order[i].second);
  std::sort(drawn.begin(), drawn.end());
  return drawn;
}

}  // namespace neuroshard::chain
