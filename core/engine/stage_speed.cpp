#include "core/engine/stage_speed.h"

#include <algorithm>
#include <vector>

namespace neuroshard::engine {

void StageSpeed::add(std::uint64_t tokens, Duration computed) {
  if (tokens == 0 || computed <= Duration::zero()) return;
  std::lock_guard lock(mutex_);
  last_.push_back(static_cast<double>(tokens) / to_seconds(computed));
  if (last_.size() > most_steps) last_.pop_front();
}

void StageSpeed::clear() {
  std::lock_guard lock(mutex_);
  last_.clear();
}

std::optional<double> StageSpeed::tokens_per_second() const {
  std::lock_guard lock(mutex_);
  if (last_.size() < least_steps) return std::nullopt;
  std::vector<double> speeds(last_.begin(), last_.end());
  const auto middle = speeds.begin() + static_cast<std::ptrdiff_t>((speeds.size() - 1) / 2);
  std::nth_element(speeds.begin(), middle, speeds.end());
  return *middle;
}

}  // namespace neuroshard::engine
