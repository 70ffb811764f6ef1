// The shards of a driver in the order in which it takes them. Without a network: all, from the driver's own place
// on. In a network: the published ones that a beacon draws, then all of the person's own.
//
// Threads: one.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/data/batch_plan.h"

namespace neuroshard::data {

// A round of the network, its beacon, and the number of published shards that it draws from.
struct BeaconDraw {
  std::uint64_t round = 0;
  Hash256 beacon{};
  std::uint32_t total = 0;
  friend bool operator==(const BeaconDraw&, const BeaconDraw&) = default;
};

class ShardRing {
 public:
  // train: at least one of them has a whole sequence. Begins without a network.
  ShardRing(const std::vector<ShardEntry>& train, const Hash256& driver, std::uint32_t sequence,
            std::uint32_t drawn);

  // Lays the ring anew if it is not that of this draw; none: without a network.
  void use(const std::optional<BeaconDraw>& draw);
  // Published shards that have a whole sequence.
  std::uint32_t total() const { return static_cast<std::uint32_t>(published_.size()); }
  const ShardEntry& front() const { return ring_.front(); }
  bool holds(ShardId id) const { return find(id) < ring_.size(); }
  // The last one's is the first. An id that the ring does not hold: the first.
  const ShardEntry& after(ShardId id) const;
  bool is_last(ShardId id) const { return find(id) + 1 == ring_.size(); }
  // Any usable shard, in the ring or not; null: none has this id.
  const ShardEntry* usable(ShardId id) const;
  std::size_t size() const { return ring_.size(); }

 private:
  std::size_t find(ShardId id) const;
  void lay();

  const Hash256 driver_;
  const std::uint32_t drawn_;
  std::vector<ShardEntry> usable_, published_;
  std::optional<BeaconDraw> draw_;
  std::vector<ShardEntry> ring_;
};

}  // namespace neuroshard::data
