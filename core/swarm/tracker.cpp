#include "core/swarm/tracker.h"

#include <algorithm>

#include "core/swarm/messages.h"

namespace neuroshard::swarm {
namespace {

// The tracker has limits of its own, and all records come from their nodes.
net::NodeBookLimits book_limits(const TrackerLimits& limits) {
  net::NodeBookLimits book;
  book.most = limits.nodes + 1;
  book.longest = net::longest_node_record;
  return book;
}

}  // namespace

Tracker::Tracker(const Hash256& network_id, bool one_lan, std::uint64_t seed, TrackerLimits limits)
    : one_lan_(one_lan),
      limits_(limits),
      rng_(seed),
      book_(network_id, /*one_lan=*/true, book_limits(limits)) {}

Expected<void> Tracker::enter(const net::Caller& from, const net::NodeRecord& record, WallTime now) {
  drop_silent(now);
  if (record.id() != from.id) return make_error(ErrorCode::Denied, "a node registers itself and nobody else");
  for (const net::NodeEndpoint& at : record.endpoints) {
    if (at.reach == net::Reach::Direct && at.endpoint.ip != from.endpoint.ip)
      return make_error(ErrorCode::Denied, "the record names another address than the caller is seen at, " +
                                               platform::to_text(from.endpoint.ip));
    if (!one_lan_ && !platform::globally_routable(at.endpoint.ip))
      return make_error(ErrorCode::Denied,
                        "the record names an address that is not reached from the internet");
  }
  const std::uint64_t group = platform::prefix_group(from.endpoint.ip);
  if (entries_.count(from.id) == 0) {
    const auto in_group = static_cast<std::size_t>(std::count_if(
        entries_.begin(), entries_.end(), [&](const auto& entry) { return entry.second.group == group; }));
    if (entries_.size() >= limits_.nodes || (!one_lan_ && in_group >= limits_.per_group))
      return make_error(ErrorCode::Exhausted, "this tracker has reached its limit of nodes");
  }
  NS_RETURN_IF_ERROR(book_.put(record, now));
  entries_[from.id] = {now, group};
  return {};
}

Expected<void> Tracker::heartbeat(const net::Caller& from, WallTime now) {
  drop_silent(now);
  const auto entry = entries_.find(from.id);
  if (entry == entries_.end() || book_.find(from.id, now) == nullptr)
    return make_error(ErrorCode::NotFound, "this node is not registered; register it again");
  entry->second.heard = now;
  return {};
}

std::vector<const net::NodeRecord*> Tracker::sample(const net::NodeId& asker, std::size_t count,
                                                    WallTime now) {
  drop_silent(now);
  std::vector<const net::NodeRecord*> nodes;
  for (const net::NodeRecord* record : book_.all(now))
    if (!record->endpoints.empty() && record->id() != asker) nodes.push_back(record);
  return net::spread(std::move(nodes), std::min(count, max_records), rng_);
}

TrackerStatistics Tracker::statistics(WallTime now) const {
  TrackerStatistics sum;
  for (const net::NodeRecord* record : book_.all(now)) {
    const auto entry = entries_.find(record->id());
    if (entry == entries_.end() || now - entry->second.heard > limits_.silence) continue;
    ++sum.nodes;
    sum.reachable += record->endpoints.empty() ? 0 : 1;
    // Sums of claims of strangers: they saturate instead of wrapping around.
    const std::uint64_t memory = sum.memory_bytes + record->memory_bytes;
    sum.memory_bytes = memory < sum.memory_bytes ? ~std::uint64_t{0} : memory;
    sum.tokens_per_second += record->tokens_per_second;
  }
  return sum;
}

void Tracker::drop_silent(WallTime now) {
  std::erase_if(entries_, [&](const auto& entry) {
    if (now - entry.second.heard <= limits_.silence) return false;
    book_.remove(entry.first);
    return true;
  });
  book_.drop_expired(now);
}

}  // namespace neuroshard::swarm
