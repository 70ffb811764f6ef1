#include "ui/models/checkpoint_branches.h"

#include <algorithm>
#include <string_view>
#include <unordered_map>
#include <utility>

namespace neuroshard::ui {
namespace {

using Span = std::pair<std::uint64_t, std::uint64_t>;

bool overlaps(const std::vector<Span>& taken, const Span& wanted) {
  return std::any_of(taken.begin(), taken.end(), [&wanted](const Span& span) {
    return wanted.first <= span.second && span.first <= wanted.second;
  });
}

}  // namespace

std::vector<CheckpointPlace> place_on_branches(const std::vector<node::CheckpointEntry>& entries) {
  std::unordered_map<std::string_view, int> by_name;
  for (std::size_t i = 0; i < entries.size(); ++i) by_name[entries[i].name] = static_cast<int>(i);
  std::vector<CheckpointPlace> places(entries.size());
  std::vector<bool> placed(entries.size(), false);
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const auto found = by_name.find(entries[i].parent);
    // A parent is older, so it stands behind; anything else is a list that contradicts itself.
    if (!entries[i].parent.empty() && found != by_name.end() && found->second > static_cast<int>(i))
      places[i].parent = found->second;
  }
  // Without a known parent a save goes on from the next older one of fewer steps, if that is not the end of a
  // branch already.
  const auto previous = [&](std::size_t i) {
    if (places[i].parent >= 0) return places[i].parent;
    if (i + 1 < entries.size() && entries[i + 1].step < entries[i].step && !placed[i + 1])
      return static_cast<int>(i + 1);
    return -1;
  };
  std::vector<std::vector<Span>> lanes;
  for (std::size_t tip = 0; tip < entries.size(); ++tip) {
    if (placed[tip]) continue;
    std::vector<std::size_t> line;
    Span span{entries[tip].step, entries[tip].step};
    for (int at = static_cast<int>(tip); at >= 0 && !placed[static_cast<std::size_t>(at)];) {
      const auto here = static_cast<std::size_t>(at);
      placed[here] = true;
      line.push_back(here);
      span = {std::min(span.first, entries[here].step), std::max(span.second, entries[here].step)};
      at = previous(here);
    }
    std::size_t lane = 0;
    while (lane < lanes.size() && overlaps(lanes[lane], span)) ++lane;
    if (lane == lanes.size()) lanes.emplace_back();
    lanes[lane].push_back(span);
    for (const std::size_t here : line) places[here].lane = static_cast<int>(lane);
  }
  return places;
}

}  // namespace neuroshard::ui
