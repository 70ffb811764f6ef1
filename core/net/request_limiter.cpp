#include "core/net/request_limiter.h"

#include "core/platform/socket/ip_address.h"

namespace neuroshard::net {

TokenBucket& RequestLimiter::bucket(std::uint64_t key, double factor, MonotonicTime now) {
  if (const auto known = entries_.find(key); known != entries_.end()) {
    order_.splice(order_.begin(), order_, known->second);
    return known->second->bucket;
  }
  if (order_.size() >= limits_.callers) {
    entries_.erase(order_.back().key);
    order_.pop_back();
  }
  order_.push_front({key, TokenBucket(limits_.per_second * factor, limits_.burst * factor, now)});
  entries_[key] = order_.begin();
  return order_.front().bucket;
}

bool RequestLimiter::admit(const Caller& from, MonotonicTime now) {
  // The lowest bit keeps ids and groups apart.
  const std::uint64_t id = NodeIdHash()(from.id) | 1;
  if (!bucket(id, 1, now).try_take(1, now)) return false;
  if (one_lan_) return true;
  const std::uint64_t group =
      (platform::prefix_group(from.endpoint.ip) * 0x9e3779b97f4a7c15u) & ~std::uint64_t{1};
  return bucket(group, limits_.group_factor, now).try_take(1, now);
}

}  // namespace neuroshard::net
