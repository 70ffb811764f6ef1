#include "core/net/ban_list.h"

#include <algorithm>

namespace neuroshard::net {

void BanList::ban(const NodeId& id, Duration length, std::string reason) {
  const WallTime now = clock_.wall_now();
  const WallTime until = now + std::chrono::duration_cast<std::chrono::milliseconds>(length);
  const std::lock_guard lock(mutex_);
  if (bans_.size() >= max_bans && bans_.count(id) == 0) {
    std::erase_if(bans_, [now](const auto& entry) { return entry.second.until <= now; });
    if (bans_.size() >= max_bans) {
      bans_.erase(std::min_element(bans_.begin(), bans_.end(), [](const auto& a, const auto& b) {
        return a.second.until < b.second.until;
      }));
    }
  }
  bans_[id] = {id, until, std::move(reason)};
}

void BanList::lift(const NodeId& id) {
  const std::lock_guard lock(mutex_);
  bans_.erase(id);
}

std::optional<std::string> BanList::reason(const NodeId& id) const {
  const std::lock_guard lock(mutex_);
  const auto found = bans_.find(id);
  if (found == bans_.end() || found->second.until <= clock_.wall_now()) return std::nullopt;
  return found->second.reason;
}

std::vector<Ban> BanList::all() const {
  const WallTime now = clock_.wall_now();
  std::vector<Ban> bans;
  const std::lock_guard lock(mutex_);
  for (const auto& [id, ban] : bans_)
    if (ban.until > now) bans.push_back(ban);
  return bans;
}

}  // namespace neuroshard::net
