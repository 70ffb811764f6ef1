// Token buckets of keys that strangers choose: ids and address groups. There are so many and no more, and keys share
// them by a keyed hash. So the memory is bounded, and no number of keys resets a bucket. Two keys may share a bucket
// by chance; without the seed nobody knows which.
#pragma once

#include <cstdint>
#include <unordered_map>

#include "core/net/token_bucket.h"

namespace neuroshard::net {

// Threads: one.
class HashedBuckets {
 public:
  // Each begins as `full`.
  HashedBuckets(std::size_t count, const TokenBucket& full, std::uint64_t seed)
      : count_(count), full_(full), seed_(seed) {}
  TokenBucket& of(std::uint64_t high, std::uint64_t low = 0) {
    return buckets_.try_emplace(place(high, low), full_).first->second;
  }

 private:
  // The finalizer of SplitMix64 over both words and the seed.
  std::size_t place(std::uint64_t high, std::uint64_t low) const {
    std::uint64_t mixed = seed_;
    for (const std::uint64_t word : {high, low}) {
      mixed = (mixed ^ word) + 0x9e3779b97f4a7c15u;
      mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9u;
      mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111ebu;
      mixed ^= mixed >> 31;
    }
    return static_cast<std::size_t>(mixed % count_);
  }

  const std::size_t count_;
  const TokenBucket full_;
  const std::uint64_t seed_;
  std::unordered_map<std::size_t, TokenBucket> buckets_;  // those that were used
};

}  // namespace neuroshard::net
