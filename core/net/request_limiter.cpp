#include "core/net/request_limiter.h"

#include "core/net/prefix_group.h"

namespace neuroshard::net {

RequestLimiter::Buckets& RequestLimiter::buckets(const Share& share, MonotonicTime now) {
  if (const auto known = entries_.find(share.key); known != entries_.end()) {
    order_.splice(order_.begin(), order_, known->second);
    return *known->second;
  }
  if (order_.size() >= limits_.callers) {
    entries_.erase(order_.back().key);
    order_.pop_back();
  }
  const double factor = share.factor;
  order_.push_front({share.key, TokenBucket(limits_.per_second * factor, limits_.burst * factor, now),
                     TokenBucket(limits_.bytes_per_second * factor, limits_.bytes_burst * factor, now)});
  entries_[share.key] = order_.begin();
  return order_.front();
}

RequestLimiter::Shares RequestLimiter::shares(const Caller& from, PeerRank rank) const {
  // The two lowest bits keep ids, groups and the share of all strangers apart.
  const Share own{NodeIdHash()(from.id) | 1, 1};
  if (one_lan_ || rank != PeerRank::Stranger) return {{own}, 1};
  const std::uint64_t group = (limit_group(from.endpoint.ip) * 0x9e3779b97f4a7c15u) & ~std::uint64_t{3};
  return {{own, {group, limits_.group_factor}, {2, limits_.strangers_factor}}, 3};
}

bool RequestLimiter::admit(const Caller& from, MonotonicTime now, std::size_t bytes, PeerRank rank) {
  const Shares all = shares(from, rank);
  for (std::size_t i = 0; i < all.count; ++i) {
    Buckets& share = buckets(all.of[i], now);
    if (share.bytes.available(now) < static_cast<double>(bytes) || !share.calls.try_take(1, now))
      return false;
  }
  charge(from, now, bytes, rank);
  return true;
}

void RequestLimiter::charge(const Caller& from, MonotonicTime now, std::size_t bytes, PeerRank rank) {
  const Shares all = shares(from, rank);
  for (std::size_t i = 0; i < all.count; ++i)
    static_cast<void>(buckets(all.of[i], now).bytes.take(static_cast<double>(bytes), now));
}

}  // namespace neuroshard::net
