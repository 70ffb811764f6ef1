#include "core/dht/routing_table.h"

#include <algorithm>

namespace neuroshard::dht {
namespace {

template <class Entries>
auto position(Entries& entries, const net::NodeId& id) {
  return std::find_if(entries.begin(), entries.end(), [&](const auto& e) { return e.contact.id == id; });
}

}  // namespace

RoutingTable::RoutingTable(const net::NodeId& self, TableLimits limits, bool one_lan)
    : self_(self), limits_(limits), one_lan_(one_lan) {}

RoutingTable::Bucket& RoutingTable::bucket_of(const net::NodeId& id) {
  const auto index = static_cast<std::size_t>(net::shared_bits(self_, id));
  if (index >= buckets_.size()) buckets_.resize(index + 1);
  return buckets_[index];
}

std::size_t RoutingTable::room(const Bucket& bucket) const {
  const auto shared_bits = static_cast<std::size_t>(&bucket - buckets_.data());
  return std::max(limits_.bucket, shared_bits < 16 ? limits_.farthest_bucket >> shared_bits : 0);
}

bool RoutingTable::group_has_room(const Bucket& bucket, const net::Contact& contact) const {
  if (one_lan_) return true;
  const std::uint64_t group = platform::prefix_group(contact.endpoint.ip);
  const auto all = groups_.find(group);
  if (all == groups_.end()) return true;
  if (all->second >= limits_.per_group_table) return false;
  const auto here = std::count_if(bucket.live.begin(), bucket.live.end(), [&](const Entry& e) {
    return platform::prefix_group(e.contact.endpoint.ip) == group;
  });
  return static_cast<std::size_t>(here) < limits_.per_group_bucket;
}

void RoutingTable::insert(Bucket& bucket, const net::Contact& contact, MonotonicTime now) {
  bucket.live.push_back({contact, now, 0});
  ++groups_[platform::prefix_group(contact.endpoint.ip)];
  ++size_;
}

void RoutingTable::remove(Bucket& bucket, std::vector<Entry>::iterator entry) {
  const auto group = groups_.find(platform::prefix_group(entry->contact.endpoint.ip));
  if (--group->second == 0) groups_.erase(group);
  bucket.live.erase(entry);
  --size_;
}

void RoutingTable::answered(const net::Contact& contact, MonotonicTime now) {
  if (contact.id == self_) return;
  Bucket& bucket = bucket_of(contact.id);
  std::erase_if(bucket.spares, [&](const net::Contact& spare) { return spare.id == contact.id; });
  if (const auto known = position(bucket.live, contact.id); known != bucket.live.end()) {
    if (known->contact.endpoint == contact.endpoint) {
      known->seen = now;
      known->failures = 0;
      return;
    }
    if (known->failures == 0) return;  // it still answers where it is known
    remove(bucket, known);             // it moved: its new address goes through the limits
  }
  if (!group_has_room(bucket, contact)) return;
  if (bucket.live.size() >= room(bucket)) {
    const auto worst =
        std::max_element(bucket.live.begin(), bucket.live.end(),
                         [](const Entry& a, const Entry& b) { return a.failures < b.failures; });
    if (worst->failures == 0) return heard_of(contact);
    remove(bucket, worst);
  }
  insert(bucket, contact, now);
}

void RoutingTable::passed_over(const net::Contact& contact, MonotonicTime now) {
  if (contact.id == self_) return;
  Bucket& bucket = bucket_of(contact.id);
  std::erase(bucket.spares, contact);
  const auto known = position(bucket.live, contact.id);
  if (known != bucket.live.end() && known->contact == contact) known->seen = now;
}

void RoutingTable::failed(const net::Contact& contact) {
  if (contact.id == self_) return;
  Bucket& bucket = bucket_of(contact.id);
  std::erase(bucket.spares, contact);
  const auto known = position(bucket.live, contact.id);
  if (known == bucket.live.end() || !(known->contact == contact)) return;
  if (++known->failures >= limits_.failures_until_removed) remove(bucket, known);
}

void RoutingTable::heard_of(const net::Contact& contact) {
  if (contact.id == self_) return;
  Bucket& bucket = bucket_of(contact.id);
  if (position(bucket.live, contact.id) != bucket.live.end()) return;
  const auto known = std::find_if(bucket.spares.begin(), bucket.spares.end(),
                                  [&](const net::Contact& spare) { return spare.id == contact.id; });
  if (known != bucket.spares.end() || bucket.spares.size() >= limits_.spares) return;
  bucket.spares.push_back(contact);
}

// The target's own bucket holds its nearest contacts; then come those of all deeper buckets together, then
// each one above. So most buckets are not visited.
std::vector<net::Contact> RoutingTable::closest(const net::NodeId& target, std::size_t count) const {
  std::vector<const net::Contact*> good;
  const auto take = [&](std::size_t from, std::size_t to) {
    const auto before = static_cast<std::ptrdiff_t>(good.size());
    for (std::size_t i = from; i < to; ++i)
      for (const Entry& entry : buckets_[i].live)
        if (entry.failures == 0) good.push_back(&entry.contact);
    std::sort(good.begin() + before, good.end(), [&](const net::Contact* a, const net::Contact* b) {
      return net::closer(target, a->id, b->id);
    });
  };
  const std::size_t own =
      std::min(static_cast<std::size_t>(net::shared_bits(self_, target)), buckets_.size());
  if (own < buckets_.size()) {
    take(own, own + 1);
    if (good.size() < count) take(own + 1, buckets_.size());
  }
  for (std::size_t above = own; above-- > 0 && good.size() < count;) take(above, above + 1);
  std::vector<net::Contact> result;
  result.reserve(std::min(count, good.size()));
  for (std::size_t i = 0; i < good.size() && i < count; ++i) result.push_back(*good[i]);
  return result;
}

double RoutingTable::estimated_members() const {
  constexpr std::size_t sample = 16;
  const std::vector<net::Contact> nearest = closest(self_, sample);
  if (nearest.size() < sample) return double(size_ + 1);
  const double share = net::distance_share(nearest.back().id, self_);
  return share <= 0 ? double(size_ + 1) : std::max(double(size_ + 1), double(sample) / share);
}

std::vector<net::Contact> RoutingTable::to_check(std::size_t count, MonotonicTime silent_before) const {
  std::vector<net::Contact> wanted;
  const auto take = [&](const net::Contact& contact) {
    if (wanted.size() < count) wanted.push_back(contact);
  };
  for (const Bucket& bucket : buckets_)
    for (const Entry& entry : bucket.live)
      if (entry.failures > 0) take(entry.contact);
  for (const Bucket& bucket : buckets_)
    if (bucket.live.size() < room(bucket))
      for (const net::Contact& spare : bucket.spares) take(spare);
  std::vector<const Entry*> silent;
  for (const Bucket& bucket : buckets_)
    for (const Entry& entry : bucket.live)
      if (entry.failures == 0 && entry.seen < silent_before) silent.push_back(&entry);
  const std::size_t rest = std::min(count - wanted.size(), silent.size());
  std::partial_sort(silent.begin(), silent.begin() + static_cast<std::ptrdiff_t>(rest), silent.end(),
                    [](const Entry* a, const Entry* b) { return a->seen < b->seen; });
  for (std::size_t i = 0; i < rest; ++i) take(silent[i]->contact);
  return wanted;
}

std::optional<int> RoutingTable::stale_bucket(MonotonicTime since, MonotonicTime now) {
  int oldest = -1;
  for (std::size_t i = 0; i < buckets_.size(); ++i) {
    if (buckets_[i].looked_up >= since) continue;
    if (oldest < 0 || buckets_[i].looked_up < buckets_[static_cast<std::size_t>(oldest)].looked_up)
      oldest = static_cast<int>(i);
  }
  if (oldest < 0) return std::nullopt;
  buckets_[static_cast<std::size_t>(oldest)].looked_up = now;
  return oldest;
}

}  // namespace neuroshard::dht
