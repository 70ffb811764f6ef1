#include "core/net/node_book.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "core/net/address_group.h"

namespace neuroshard::net {
namespace {

constexpr std::uint64_t behind_relays = 0;  // no address group: prefix_group of IPv4 is odd, of IPv6 large

bool has(const std::vector<std::uint64_t>& groups, std::uint64_t group) {
  return std::find(groups.begin(), groups.end(), group) != groups.end();
}

}  // namespace

NodeBook::Entry NodeBook::describe(const NodeRecord& record, const NodeId& id, WallTime now,
                                   const std::optional<Caller>& informant) const {
  Entry entry;
  entry.record = record;
  entry.until =
      std::min(record.expires, now + std::chrono::duration_cast<std::chrono::milliseconds>(limits_.longest));
  for (const NodeEndpoint& at : record.endpoints) {
    const auto group = counted_group(at.endpoint.ip, one_lan_);
    if (group && !has(entry.groups, *group)) entry.groups.push_back(*group);
  }
  if (informant && informant->id == id &&
      std::all_of(record.endpoints.begin(), record.endpoints.end(),
                  [&](const NodeEndpoint& at) { return at.endpoint.ip == informant->endpoint.ip; }))
    entry.standing = Standing::Introduced;
  if (informant && !one_lan_)
    entry.informant = counted_group(informant->endpoint.ip, one_lan_).value_or(behind_relays);
  const auto known = entries_.find(id);
  if (known == entries_.end()) return entry;
  // Endpoints that the newer record does not name any more are no longer proven.
  for (const platform::Endpoint& at : known->second.reached)
    if (std::any_of(record.endpoints.begin(), record.endpoints.end(),
                    [&](const NodeEndpoint& named) { return named.endpoint == at; }))
      entry.reached.push_back(at);
  if (!entry.reached.empty()) {
    entry.standing = Standing::Reached;
    entry.informant.reset();
  } else if (known->second.informant) {
    entry.informant = known->second.informant;
  }
  return entry;
}

Expected<void> NodeBook::put(const NodeRecord& record, WallTime now, const std::optional<Caller>& informant) {
  const NodeId id = record.id();
  const auto known = entries_.find(id);
  // Before the signature check: a replay and a crowd must stay cheap.
  if (known != entries_.end() && record.sequence <= known->second.record.sequence) {
    const NodeRecord& former = known->second.record;
    if (record.sequence == former.sequence && record.signature == former.signature) return {};
    return make_error(ErrorCode::Denied, "the node's record is not newer than the one that is known");
  }
  Entry entry = describe(record, id, now, informant);
  NS_ASSIGN_OR_RETURN(const std::vector<NodeId> victims, room_for(id, entry));
  if (auto holds = check_node_record(record, network_id_, now); !holds.ok()) {
    if (never_held(record, network_id_)) ++forged_;
    return holds;
  }
  for (const NodeId& victim : victims) remove(victim);
  remove(id);
  count(entry, 1);
  entries_.emplace(id, std::move(entry));
  return {};
}

Expected<std::vector<NodeId>> NodeBook::room_for(const NodeId& id, const Entry& entry) const {
  std::vector<NodeId> victims;
  const auto known = entries_.find(id);
  const Entry* const former = known == entries_.end() ? nullptr : &known->second;
  const bool full = former == nullptr && entries_.size() >= limits_.most;
  const auto take_from = [&](Standing below, const Crowd& crowd, const auto& fits) {
    const auto victim = weakest(below, crowd, fits);
    if (victim) victims.push_back(*victim);
    return victim.has_value();
  };
  const auto any = [](const Entry&) { return true; };
  if (is_member(id)) {
    if (full) take_from(Standing::Reached, everybody_, any);
    return victims;
  }
  for (const std::uint64_t group : entry.groups) {
    const std::size_t own = former != nullptr && has(former->groups, group) ? 1 : 0;
    const Crowd crowd = crowd_of(in_group_, group);
    const auto is_in_it = [group](const Entry& other) { return has(other.groups, group); };
    if (crowd.all - own >= limits_.per_group && !take_from(entry.standing, crowd, is_in_it))
      return make_error(ErrorCode::Exhausted, "too many nodes of this address range are known already");
  }
  if (entry.informant) {
    const std::size_t own = former != nullptr && former->informant == entry.informant ? 1 : 0;
    const Crowd crowd = crowd_of(of_informant_, *entry.informant);
    const auto is_of_it = [&](const Entry& other) { return other.informant == entry.informant; };
    if (crowd.all - own >= limits_.per_informant && !take_from(entry.standing, crowd, is_of_it))
      return make_error(ErrorCode::Exhausted, "this address range has named too many nodes already");
  }
  if (!full || !victims.empty() || take_from(entry.standing, everybody_, any)) return victims;
  const auto victim = one_of_the_largest_group(entry);
  if (!victim) return make_error(ErrorCode::Exhausted, "too many nodes are known already");
  victims.push_back(*victim);
  return victims;
}

std::optional<NodeId> NodeBook::weakest(Standing below, const Crowd& crowd,
                                        const std::function<bool(const Entry&)>& fits) const {
  if (below == Standing::Named || (below == Standing::Introduced && crowd.named == 0)) return std::nullopt;
  auto found = entries_.end();
  for (auto at = entries_.begin(); at != entries_.end(); ++at) {
    if (at->second.standing >= below || !fits(at->second) || is_member(at->first)) continue;
    if (found == entries_.end() || std::tie(at->second.standing, at->second.until) <
                                       std::tie(found->second.standing, found->second.until))
      found = at;
  }
  return found == entries_.end() ? std::nullopt : std::optional(found->first);
}

// Of those that were not reached either, if that makes the groups more even.
std::optional<NodeId> NodeBook::one_of_the_largest_group(const Entry& newcomer) const {
  std::pair<std::uint64_t, std::size_t> largest{0, 1};
  for (const std::uint64_t group : newcomer.groups)
    largest.second = std::max(largest.second, crowd_of(in_group_, group).all + 1);
  for (const auto& [group, crowd] : in_group_)
    if (crowd.all > largest.second) largest = {group, crowd.all};
  for (const auto& [id, entry] : entries_)
    if (entry.standing == newcomer.standing && entry.standing != Standing::Reached &&
        has(entry.groups, largest.first) && !is_member(id))
      return id;
  return std::nullopt;
}

NodeBook::Crowd NodeBook::crowd_of(const Crowds& crowds, std::uint64_t key) {
  const auto found = crowds.find(key);
  return found == crowds.end() ? Crowd{} : found->second;
}

void NodeBook::count(const Entry& entry, int change) {
  const auto count_in = [&](Crowd& crowd) {
    crowd.all += static_cast<std::size_t>(change);
    if (entry.standing == Standing::Named) crowd.named += static_cast<std::size_t>(change);
    return crowd.all;
  };
  const auto count_for = [&](Crowds& crowds, std::uint64_t key) {
    if (count_in(crowds[key]) == 0) crowds.erase(key);
  };
  static_cast<void>(count_in(everybody_));
  for (const std::uint64_t group : entry.groups) count_for(in_group_, group);
  if (entry.informant) count_for(of_informant_, *entry.informant);
}

NodeBook::Entries::iterator NodeBook::erase(Entries::iterator at) {
  count(at->second, -1);
  return entries_.erase(at);
}

void NodeBook::remove(const NodeId& id) {
  if (const auto at = entries_.find(id); at != entries_.end()) erase(at);
}

void NodeBook::reached(const NodeId& id, const platform::Endpoint& at, WallTime now) {
  const auto found = entries_.find(id);
  if (found == entries_.end()) return;
  Entry& entry = found->second;
  if (std::none_of(entry.record.endpoints.begin(), entry.record.endpoints.end(),
                   [&](const NodeEndpoint& named) { return named.endpoint == at; }))
    return;
  count(entry, -1);
  entry.informant.reset();
  entry.standing = Standing::Reached;
  entry.until = std::min(entry.record.expires,
                         now + std::chrono::duration_cast<std::chrono::milliseconds>(limits_.longest));
  if (!is_proven(id, at)) entry.reached.push_back(at);
  count(entry, 1);
}

const NodeRecord* NodeBook::find(const NodeId& id, WallTime now) const {
  const auto found = entries_.find(id);
  return found == entries_.end() || now >= found->second.until ? nullptr : &found->second.record;
}

std::vector<const NodeRecord*> NodeBook::all(WallTime now) const {
  std::vector<const NodeRecord*> living;
  for (const auto& [id, entry] : entries_)
    if (now < entry.until) living.push_back(&entry.record);
  return living;
}

std::vector<const NodeRecord*> NodeBook::proven(WallTime now) const {
  std::vector<const NodeRecord*> found;
  for (const auto& [id, entry] : entries_) {
    const auto unproven = [&, &reached = entry.reached](const NodeEndpoint& named) {
      return named.reach == Reach::Direct &&
             std::find(reached.begin(), reached.end(), named.endpoint) == reached.end();
    };
    const auto& named = entry.record.endpoints;
    if (now < entry.until && !entry.reached.empty() && std::none_of(named.begin(), named.end(), unproven))
      found.push_back(&entry.record);
  }
  return found;
}

std::vector<platform::IpAddress> NodeBook::direct_addresses(WallTime now) const {
  std::vector<platform::IpAddress> reached, others;
  for (const auto& [id, entry] : entries_) {
    if (now >= entry.until) continue;
    for (const NodeEndpoint& named : entry.record.endpoints)
      if (named.reach == Reach::Direct)
        (is_proven(id, named.endpoint) ? reached : others).push_back(named.endpoint.ip);
  }
  reached.insert(reached.end(), others.begin(), others.end());
  return reached;
}

std::vector<const NodeRecord*> NodeBook::to_inform(
    WallTime now, bool reached_first, const std::function<bool(const NodeRecord&)>& callable,
    const std::function<bool(const NodeRecord&)>& informed) const {
  std::vector<const NodeRecord*> reached, reached_news, others, others_news;
  for (const auto& [id, entry] : entries_) {
    if (now >= entry.until || !callable(entry.record)) continue;
    const bool news = !informed(entry.record), was = entry.standing == Standing::Reached;
    (was ? reached : others).push_back(&entry.record);
    if (news) (was ? reached_news : others_news).push_back(&entry.record);
  }
  auto& first = reached_first ? reached_news : others_news;
  auto& second = reached_first ? others_news : reached_news;
  if (!first.empty()) return std::move(first);
  if (!second.empty()) return std::move(second);
  if (reached_first && !reached.empty()) return reached;
  reached.insert(reached.end(), others.begin(), others.end());
  return reached;
}

bool NodeBook::is_proven(const NodeId& id, const platform::Endpoint& at) const {
  const auto found = entries_.find(id);
  return found != entries_.end() && std::find(found->second.reached.begin(), found->second.reached.end(),
                                              at) != found->second.reached.end();
}

void NodeBook::drop_expired(WallTime now) {
  for (auto at = entries_.begin(); at != entries_.end();) at = now >= at->second.until ? erase(at) : ++at;
}

std::vector<const NodeRecord*> spread(std::vector<const NodeRecord*> records, std::size_t most, Rng& rng) {
  for (std::size_t i = 0; i + 1 < records.size(); ++i)
    std::swap(records[i], records[i + rng.below(records.size() - i)]);
  std::unordered_map<std::uint64_t, std::size_t> turns;
  // Drawn anew: in the shuffled order, large groups come before small ones.
  std::vector<std::tuple<std::size_t, std::uint64_t, const NodeRecord*>> ranked;
  for (const NodeRecord* record : records)
    ranked.emplace_back(turns[platform::prefix_group(record->endpoints.front().endpoint.ip)]++, rng.next(),
                        record);
  most = std::min(ranked.size(), most);
  std::partial_sort(ranked.begin(), ranked.begin() + static_cast<std::ptrdiff_t>(most), ranked.end());
  ranked.resize(most);
  std::vector<const NodeRecord*> chosen;
  for (const auto& [turn, draw, record] : ranked) chosen.push_back(record);
  return chosen;
}

}  // namespace neuroshard::net
