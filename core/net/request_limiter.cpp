#include "core/net/request_limiter.h"

#include "core/base/bytes.h"
#include "core/net/address_group.h"

namespace neuroshard::net {

RequestLimiter::RequestLimiter(RequestLimits limits, bool one_lan, std::uint64_t seed)
    : limits_(limits),
      one_lan_(one_lan),
      ids_(table(1, seed)),
      groups_(table(limits.group_factor, seed)),
      strangers_(full(limits.strangers_factor)) {}

// Full ones are full at any time.
RequestLimiter::Buckets RequestLimiter::full(double factor) const {
  return {TokenBucket(limits_.per_second * factor, limits_.burst * factor, {}),
          TokenBucket(limits_.bytes_per_second * factor, limits_.bytes_burst * factor, {})};
}

RequestLimiter::Table RequestLimiter::table(double factor, std::uint64_t seed) const {
  const Buckets each = full(factor);
  return {HashedBuckets(limits_.buckets, each.calls, seed), HashedBuckets(limits_.buckets, each.bytes, seed)};
}

RequestLimiter::Buckets& RequestLimiter::of_known(const NodeId& id) {
  if (const auto known = known_.find(id); known != known_.end()) {
    order_.splice(order_.begin(), order_, known->second);
    return known->second->of;
  }
  if (order_.size() >= limits_.callers) {
    known_.erase(order_.back().id);
    order_.pop_back();
  }
  order_.push_front({id, full(1)});
  known_[id] = order_.begin();
  return order_.front().of;
}

RequestLimiter::Shares RequestLimiter::shares(const Caller& from, PeerRank rank) {
  if (rank != PeerRank::Stranger) {
    Buckets& own = of_known(from.id);
    return {{{&own.calls, &own.bytes}}, 1};
  }
  const auto high = load_le<std::uint64_t>(from.id.data()), low = load_le<std::uint64_t>(from.id.data() + 8);
  const Share own{&ids_.calls.of(high, low), &ids_.bytes.of(high, low)};
  if (one_lan_) return {{own}, 1};
  const std::uint64_t group = limit_group(from.endpoint.ip);
  return {{own, {&groups_.calls.of(group), &groups_.bytes.of(group)}, {&strangers_.calls, &strangers_.bytes}},
          3};
}

RequestLimiter::Exceeded RequestLimiter::exceeded(const Caller& from, MonotonicTime now, std::size_t bytes,
                                                  PeerRank rank) {
  constexpr Exceeded whose[]{Exceeded::Own, Exceeded::Group, Exceeded::Strangers};
  const Shares all = shares(from, rank);
  for (std::size_t i = 0; i < all.count; ++i)
    if (all.of[i].calls->available(now) < 1 || all.of[i].bytes->available(now) < static_cast<double>(bytes))
      return whose[i];
  return Exceeded::Nobodys;
}

bool RequestLimiter::admit(const Caller& from, MonotonicTime now, std::size_t bytes, PeerRank rank) {
  if (exceeded(from, now, bytes, rank) != Exceeded::Nobodys) return false;
  const Shares all = shares(from, rank);
  for (std::size_t i = 0; i < all.count; ++i) all.of[i].calls->try_take(1, now);
  charge(from, now, bytes, rank);
  return true;
}

void RequestLimiter::charge(const Caller& from, MonotonicTime now, std::size_t bytes, PeerRank rank) {
  const Shares all = shares(from, rank);
  for (std::size_t i = 0; i < all.count; ++i)
    static_cast<void>(all.of[i].bytes->take(static_cast<double>(bytes), now));
}

}  // namespace neuroshard::net
