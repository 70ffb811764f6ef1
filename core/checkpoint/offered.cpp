#include "core/checkpoint/offered.h"

#include <algorithm>

namespace neuroshard::checkpoint {

void OfferedCheckpoints::update(const std::vector<Candidate>& newest_first, const Asked& asked,
                                std::uint64_t room, MonotonicTime now) {
  // Deleted by a person, or found damaged.
  offers_.erase(std::remove_if(offers_.begin(), offers_.end(),
                               [&](const Offer& offer) {
                                 return std::none_of(
                                     newest_first.begin(), newest_first.end(),
                                     [&](const Candidate& c) { return c.name == offer.name; });
                               }),
                offers_.end());
  take_newest(newest_first, now);
  for (Offer& offer : offers_)
    if (const auto at = asked(offer.name); at && *at > offer.used) offer.used = *at;
  if (offers_.empty()) return;
  offers_.erase(std::remove_if(offers_.begin() + 1, offers_.end(),
                               [&](const Offer& offer) {
                                 return now - offer.used >= rules_.unused ||
                                        now - offer.replaced >= rules_.longest;
                               }),
                offers_.end());
  while (offers_.size() > std::max<std::size_t>(rules_.most, 1)) drop_least_used();
  const auto held = [this] {
    std::uint64_t sum = 0;
    for (std::size_t i = 1; i < offers_.size(); ++i) sum += offers_[i].bytes;
    return sum;
  };
  while (offers_.size() > 1 && held() > room) drop_least_used();
}

void OfferedCheckpoints::take_newest(const std::vector<Candidate>& newest_first, MonotonicTime now) {
  if (newest_first.empty()) return;
  const Candidate& newest = newest_first.front();
  if (!offers_.empty() && (offers_.front().name == newest.name || now - offers_.front().told < rules_.told))
    return;
  if (!offers_.empty()) offers_.front().replaced = offers_.front().used = now;
  // After a restore it may be one of those before.
  offers_.erase(std::remove_if(offers_.begin(), offers_.end(),
                               [&](const Offer& offer) { return offer.name == newest.name; }),
                offers_.end());
  offers_.insert(offers_.begin(), {newest.name, newest.bytes, now, {}, now});
}

void OfferedCheckpoints::drop_least_used() {
  // Of those that were used at one time the one that was replaced first.
  offers_.erase(std::min_element(offers_.rbegin(), offers_.rend() - 1,
                                 [](const Offer& a, const Offer& b) { return a.used < b.used; })
                    .base() -
                1);
}

std::set<std::string> OfferedCheckpoints::names() const {
  std::set<std::string> names;
  for (const Offer& offer : offers_) names.insert(offer.name);
  return names;
}

}  // namespace neuroshard::checkpoint
