#include "core/engine/router_load.h"

#include <algorithm>
#include <numeric>

namespace neuroshard::engine {
namespace {

constexpr double smoothing = 2.0 / 21.0;  // exponential mean over about 20 steps

}  // namespace

void RouterLoad::add(Span<const std::uint64_t> tokens, Span<const float> bias) {
  const std::size_t experts = shape_.experts, count = experts * shape_.layers;
  if (experts <= 1 || tokens.size() != count) return;
  share_.resize(count);
  tokens_.resize(count);
  bias_.assign(bias.begin(), bias.end());
  bias_.resize(count);
  for (std::size_t layer = 0; layer < shape_.layers; ++layer) {
    const auto row = tokens.subspan(layer * experts, experts);
    const auto all = static_cast<double>(std::accumulate(row.begin(), row.end(), std::uint64_t{0}));
    const auto before = tokens_.begin() + static_cast<std::ptrdiff_t>(layer * experts);
    // A node begins to compute a layer when it moves to another part.
    const bool first = std::all_of(before, before + static_cast<std::ptrdiff_t>(experts),
                                   [](std::uint64_t n) { return n == 0; });
    for (std::size_t expert = 0; expert < experts; ++expert) {
      const std::size_t i = layer * experts + expert;
      tokens_[i] += row[expert];
      if (all == 0) continue;
      const double now = static_cast<double>(row[expert]) / all;
      share_[i] = first ? now : share_[i] + smoothing * (now - share_[i]);
    }
  }
}

std::vector<node::ExpertLoad> RouterLoad::view() const {
  std::vector<node::ExpertLoad> loads;
  if (shape_.experts <= 1) return loads;
  for (std::uint32_t layer = 0; layer < shape_.layers; ++layer) {
    for (std::uint32_t expert = 0; expert < shape_.experts && loads.size() < node::max_slots; ++expert) {
      const std::size_t i = std::size_t{layer} * shape_.experts + expert;
      node::ExpertLoad load{layer, expert, 0, 0, true, std::nullopt, 0};
      if (!share_.empty()) {
        load.share = share_[i];
        load.bias = static_cast<double>(bias_[i]);
        load.tokens = tokens_[i];
      }
      loads.push_back(load);
    }
  }
  return loads;
}

}  // namespace neuroshard::engine
