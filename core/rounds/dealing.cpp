#include "core/rounds/dealing.h"

#include <algorithm>
#include <string_view>

#include "core/base/check.h"
#include "core/crypto/hash.h"
#include "core/rounds/detail/reader.h"

namespace neuroshard::rounds {
namespace {

Bytes tagged(std::string_view tag) {
  return Bytes(tag.begin(), tag.end());
}

bool by_id(const RoundMember& a, const RoundMember& b) {
  return a.id < b.id;
}

}  // namespace

RosterPtr make_roster(std::vector<RoundMember> members) {
  NS_CHECK(!members.empty() && members.size() <= max_grouped_members);
  std::sort(members.begin(), members.end(), by_id);
  auto roster = std::make_shared<Roster>();
  roster->members = std::move(members);
  roster->hash = crypto::sha256(encode_roster(*roster));
  return roster;
}

Bytes encode_roster(const Roster& roster) {
  Bytes bytes = tagged("NSRR1");
  bytes.reserve(5 + 33 * roster.members.size());
  for (const RoundMember& member : roster.members) {
    append_array(bytes, member.key);
    bytes.push_back(member.missed);
  }
  return bytes;
}

Expected<RosterPtr> decode_roster(ByteSpan bytes) {
  constexpr std::size_t head = 5, each = 33;
  const auto corrupt = [] {
    return make_error(ErrorCode::Corrupt, "this is not a list of a round's members");
  };
  if (bytes.size() < head + each || (bytes.size() - head) % each != 0 ||
      as_text(bytes.first(head)) != "NSRR1" || (bytes.size() - head) / each > max_grouped_members)
    return corrupt();
  std::vector<RoundMember> members;
  for (std::size_t at = head; at < bytes.size(); at += each) {
    crypto::PublicKey key;
    std::copy_n(bytes.begin() + static_cast<std::ptrdiff_t>(at), key.size(), key.begin());
    members.push_back(make_member(key));
    members.back().missed = bytes[at + key.size()];
    const std::size_t n = members.size();
    if (members.back().missed >= rounds_missed_to_expel || (n > 1 && !by_id(members[n - 2], members[n - 1])))
      return corrupt();
  }
  return make_roster(std::move(members));
}

std::size_t roster_index(const Roster& roster, const net::NodeId& id) {
  const auto at =
      std::lower_bound(roster.members.begin(), roster.members.end(), id,
                       [](const RoundMember& member, const net::NodeId& x) { return member.id < x; });
  return at != roster.members.end() && at->id == id ? static_cast<std::size_t>(at - roster.members.begin())
                                                    : roster.members.size();
}

// With the SPEC's 16: of 8 and a little more below 64 members, of 12 below 1024, of 16 at most.
std::size_t group_count(std::size_t n, std::size_t most) {
  if (n <= most) return 1;
  if (n < 4 * most) return n / ((most + 1) / 2);
  if (n < 64 * most) return n / ((3 * most + 3) / 4);
  return (n + most - 1) / most;
}

Hash256 group_beacon(const Hash256& previous, std::uint16_t group) {
  Bytes bytes = tagged("neuroshard/group/1");
  append_array(bytes, previous);
  append_le(bytes, group);
  return crypto::sha256(bytes);
}

bool Deal::speaks(std::uint16_t member, std::uint32_t view) const {
  for (std::size_t which = 0; which < speakers_at_once; ++which)
    if (speaker(group_of[member], view, which) == member) return true;
  return false;
}

std::shared_ptr<const Deal> make_deal(const Hash256& previous, std::uint64_t round, const RoundSlot& slot,
                                      RosterPtr roster, std::size_t most) {
  auto deal = std::make_shared<Deal>();
  const std::size_t n = roster->members.size();
  std::vector<std::pair<Hash256, std::uint16_t>> draws;
  draws.reserve(n);
  for (std::size_t i = 0; i < n; ++i) {
    Bytes bytes = tagged("deal");
    append_array(bytes, previous);
    append_le(bytes, round);
    append_slot(bytes, slot);
    append_array(bytes, roster->members[i].id);
    draws.emplace_back(crypto::sha256(bytes), static_cast<std::uint16_t>(i));
  }
  std::sort(draws.begin(), draws.end());
  const std::size_t groups = group_count(n, most);
  deal->group_of.resize(n);
  for (std::size_t g = 0; g < groups; ++g) {
    std::vector<std::uint16_t> order;
    std::vector<RoundMember> members;
    for (std::size_t i = g * n / groups; i < (g + 1) * n / groups; ++i) {
      order.push_back(draws[i].second);
      members.push_back(roster->members[draws[i].second]);
      deal->group_of[draws[i].second] = static_cast<std::uint16_t>(g);
    }
    std::sort(members.begin(), members.end(), by_id);
    deal->speakers.push_back(std::move(order));
    deal->groups.push_back(std::make_shared<const std::vector<RoundMember>>(std::move(members)));
  }
  deal->leaders =
      std::make_shared<const std::vector<std::size_t>>(leader_order(previous, round, slot, roster->members));
  deal->slot = slot;
  deal->round = round;
  deal->previous = previous;
  deal->roster = std::move(roster);
  return deal;
}

}  // namespace neuroshard::rounds
