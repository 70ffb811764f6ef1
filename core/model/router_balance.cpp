#include "core/model/router_balance.h"

#include <algorithm>

namespace neuroshard::model {

RouterBalance::RouterBalance(std::size_t layers, std::size_t experts, float gamma)
    : experts_(experts),
      gamma_(gamma),
      load_(layers * experts),
      step_load_(load_.size()),
      bias_(load_.size()) {}

RouterBalance RouterBalance::of_layers(std::size_t own_first, std::size_t first, std::size_t layers) const {
  RouterBalance other(layers, experts_, gamma_);
  const std::size_t own_end = own_first + load_.size() / experts_;
  for (std::size_t layer = std::max(first, own_first); layer < std::min(first + layers, own_end); ++layer) {
    const std::size_t from = (layer - own_first) * experts_;
    const std::size_t to = (layer - first) * experts_;
    std::copy_n(load_.begin() + static_cast<std::ptrdiff_t>(from), experts_,
                other.load_.begin() + static_cast<std::ptrdiff_t>(to));
    std::copy_n(step_load_.begin() + static_cast<std::ptrdiff_t>(from), experts_,
                other.step_load_.begin() + static_cast<std::ptrdiff_t>(to));
    std::copy_n(bias_.begin() + static_cast<std::ptrdiff_t>(from), experts_,
                other.bias_.begin() + static_cast<std::ptrdiff_t>(to));
  }
  return other;
}

const float* RouterBalance::bias_of(std::size_t layer) const {
  return gamma_ > 0 ? bias_.data() + layer * experts_ : nullptr;
}

void RouterBalance::add(std::vector<std::uint64_t>& load, std::size_t layer,
                        const std::vector<std::int64_t>& counts) const {
  for (std::size_t e = 0; e < counts.size(); ++e)
    load[layer * experts_ + e] += static_cast<std::uint64_t>(counts[e]);
}

void RouterBalance::add_load(std::size_t layer, const std::vector<std::int64_t>& counts) {
  add(load_, layer, counts);
}

void RouterBalance::add_step_load(std::size_t layer, const std::vector<std::int64_t>& counts) {
  add(step_load_, layer, counts);
}

void RouterBalance::load(std::uint64_t* counts, bool reset) {
  std::copy(load_.begin(), load_.end(), counts);
  if (reset) std::fill(load_.begin(), load_.end(), 0);
}

void RouterBalance::step(std::size_t layer) {
  std::uint64_t* const load = step_load_.data() + layer * experts_;
  if (gamma_ > 0) {
    std::uint64_t total = 0;
    for (std::size_t e = 0; e < experts_; ++e) total += load[e];
    for (std::size_t e = 0; e < experts_; ++e) {
      const std::uint64_t scaled = load[e] * experts_;
      if (scaled < total) bias_[layer * experts_ + e] += gamma_;
      if (scaled > total) bias_[layer * experts_ + e] -= gamma_;
    }
  }
  std::fill(load, load + experts_, 0);
}

void RouterBalance::drop_step_load() {
  std::fill(step_load_.begin(), step_load_.end(), 0);
}

}  // namespace neuroshard::model
