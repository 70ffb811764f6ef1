// Members that hold some rows of a small model only.
#pragma once

#include <cmath>
#include <functional>
#include <memory>
#include <vector>

#include "tests/sim/chain_lab.h"

namespace neuroshard::test {

inline constexpr std::size_t holders_rows = 3, holders_row_values = 1000;
inline constexpr float holders_target = 1.0f;

// Each weight is drawn to the same target, with an error of its own in each node and round: no two deltas are equal.
class DrawnModel final : public sim::LocalModel {
 public:
  explicit DrawnModel(std::size_t node) : node_(node) {}
  void train(std::uint64_t round, std::uint32_t first, std::uint32_t steps, Span<float> weights) override {
    Rng rng((round * 100 + node_) * 1000 + first);
    for (float& weight : weights) {
      const float to = holders_target + 0.1f * static_cast<float>(rng.uniform() - 0.5);
      for (std::uint32_t step = 0; step < steps; ++step) weight += 0.02f * (to - weight);
    }
  }

 private:
  const std::size_t node_;
};

inline chain::RowSet by_turns(std::size_t node) {
  return chain::RowSet::of({static_cast<std::uint32_t>(node % holders_rows)});
}

struct HoldersLab {
  using EditOf = ChainLab::EditOf;
  using Change = std::function<void(sim::ChainWorldOptions*)>;
  explicit HoldersLab(std::uint64_t seed, std::size_t nodes,
                      std::function<chain::RowSet(std::size_t)> rows_of = by_turns,
                      const EditOf& edit_of = nullptr, std::size_t founders = 0,
                      const Change& change = nullptr)
      : world(
            options(seed, nodes, std::move(rows_of), founders, change),
            [](std::size_t node, std::uint64_t) { return std::make_unique<DrawnModel>(node); }, {},
            [this, edit_of](std::size_t node, net::PeerCaller& out,
                            const crypto::KeyPair&) -> std::unique_ptr<net::PeerCaller> {
              EditingCaller::Edit edit = edit_of ? edit_of(node) : nullptr;
              if (!edit) return nullptr;
              return std::make_unique<EditingCaller>(world.world(), out, std::move(edit));
            }) {
    for (std::size_t node = 0; node < (founders == 0 ? nodes : founders); ++node) world.start(node);
  }
  static sim::ChainWorldOptions options(std::uint64_t seed, std::size_t nodes,
                                        std::function<chain::RowSet(std::size_t)> rows_of,
                                        std::size_t founders, const Change& change) {
    sim::ChainWorldOptions options = lab_options(seed, nodes);
    options.founders = founders;
    options.initial.assign(holders_rows * holders_row_values, 0.0f);
    options.fragments = holders_rows;
    options.rows_of = std::move(rows_of);
    if (change) change(&options);
    return options;
  }
  const chain::Registry& registry(std::size_t node = 0) const {
    return *const_cast<sim::ChainWorld&>(world).chain(node).history()->tip().registry;
  }
  // Rounds since the row's anchor changed.
  std::uint64_t age(std::uint32_t row, std::size_t node = 0) const {
    return registry(node).round() - registry(node).rows().at(row).changed_round;
  }
  double error_of_row(std::uint32_t row) const {
    const std::vector<float> weights = world.newest_weights();
    double sum = 0;
    for (std::size_t i = row * holders_row_values; i < (row + 1) * holders_row_values; ++i)
      sum += std::abs(weights[i] - holders_target);
    return sum / holders_row_values;
  }
  sim::ChainWorld world;
};

}  // namespace neuroshard::test
