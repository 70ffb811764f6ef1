#include "core/net/slot_pool.h"

#include "core/base/check.h"

namespace neuroshard::net {
namespace {

template <class Counts, class Key>
std::size_t count_of(const Counts& counts, const Key& key) {
  const auto found = counts.find(key);
  return found == counts.end() ? 0 : found->second;
}

template <class Counts, class Key>
void reduce(Counts& counts, const Key& key, std::size_t by) {
  const auto found = counts.find(key);
  NS_CHECK(found != counts.end() && found->second >= by);
  if ((found->second -= by) == 0) counts.erase(found);
}

}  // namespace

std::size_t SlotPool::limit_for(const SlotUser& user) const {
  if (user.rank == PeerRank::Stranger) return limits_.all - limits_.for_known - limits_.for_control;
  return user.rank == PeerRank::Voter && user.control ? limits_.all : limits_.all - limits_.for_control;
}

bool SlotPool::take(const SlotUser& user, std::size_t count) {
  if (count == 0) return true;
  const bool stranger = user.rank == PeerRank::Stranger;
  const std::lock_guard lock(mutex_);
  if (taken_ + count > limit_for(user)) return false;
  const std::size_t per_peer =
      stranger || limits_.per_known_peer == 0 ? limits_.per_peer : limits_.per_known_peer;
  if (count_of(peers_, user.id) + count > per_peer) return false;
  if (stranger && limits_.per_group != 0 && count_of(groups_, user.group) + count > limits_.per_group)
    return false;
  taken_ += count;
  peers_[user.id] += count;
  if (stranger) groups_[user.group] += count;
  return true;
}

void SlotPool::give_back(const SlotUser& user, std::size_t count) {
  if (count == 0) return;
  const std::lock_guard lock(mutex_);
  taken_ -= count;
  reduce(peers_, user.id, count);
  if (user.rank == PeerRank::Stranger) reduce(groups_, user.group, count);
}

std::size_t SlotPool::taken() const {
  const std::lock_guard lock(mutex_);
  return taken_;
}

}  // namespace neuroshard::net
