#include "core/data/shard_ring.h"

#include <algorithm>

#include "core/base/check.h"

namespace neuroshard::data {

ShardRing::ShardRing(const std::vector<ShardEntry>& train, const Hash256& driver, std::uint32_t sequence,
                     std::uint32_t drawn)
    : driver_(driver), drawn_(drawn), published_(published_shards(train, sequence)) {
  for (const ShardEntry& shard : train)
    if (shard.tokens > sequence) usable_.push_back(shard);
  NS_CHECK(!usable_.empty());
  lay();
}

void ShardRing::use(const std::optional<BeaconDraw>& draw) {
  if (draw == draw_) return;
  draw_ = draw;
  lay();
}

void ShardRing::lay() {
  ring_.clear();
  if (draw_ && draw_->total > 0) {
    for (const std::uint32_t at : network_shard_order(draw_->beacon, driver_, draw_->total, drawn_))
      if (at < published_.size()) ring_.push_back(published_[at]);
    for (const ShardEntry& shard : usable_)
      if (is_own_shard(shard.id)) ring_.push_back(shard);
    if (!ring_.empty()) return;
  }
  const auto count = static_cast<std::uint32_t>(usable_.size());
  const std::uint32_t first = solo_first_shard(driver_, count);
  for (std::uint32_t i = 0; i < count; ++i) ring_.push_back(usable_[(first + i) % count]);
}

std::size_t ShardRing::find(ShardId id) const {
  const auto at = std::find_if(ring_.begin(), ring_.end(), [id](const ShardEntry& s) { return s.id == id; });
  return static_cast<std::size_t>(at - ring_.begin());
}

const ShardEntry& ShardRing::after(ShardId id) const {
  const std::size_t at = find(id);
  return at + 1 < ring_.size() ? ring_[at + 1] : ring_.front();
}

const ShardEntry* ShardRing::usable(ShardId id) const {
  const auto at =
      std::find_if(usable_.begin(), usable_.end(), [id](const ShardEntry& s) { return s.id == id; });
  return at == usable_.end() ? nullptr : &*at;
}

}  // namespace neuroshard::data
