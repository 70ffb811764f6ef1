#include "core/runtime/held_rows.h"

#include <fmt/format.h>

#include <utility>

#include "core/engine/initial_weights.h"

namespace neuroshard::runtime {

HeldRows::HeldRows(const config::ConsensusPart& consensus, const Hash256& network)
    : shape_(config::model_shape(consensus)), parts_(config::model_parts(consensus)), network_(network) {}

std::vector<rounds::RoundLearner*> HeldRows::learners(std::size_t count,
                                                      const std::vector<rounds::RoundLearner*>& own) const {
  std::vector<rounds::RoundLearner*> all(count, nullptr);
  auto next = own.begin();
  for (std::uint32_t row = 0; row < count; ++row)
    if (rows_.has(row)) all[row] = *next++;
  return all;
}

std::function<Expected<rounds::Anchor>(std::uint32_t row)> HeldRows::other_states(
    std::shared_ptr<Spool> spool) const {
  if (rows_.is_all()) return nullptr;
  return [shape = shape_, parts = parts_, network = network_, spool = std::move(spool)](std::uint32_t row) {
    return engine::initial_state(shape, parts.at(row), network, *spool);
  };
}

std::string HeldRows::name_of(std::uint32_t row, std::size_t count) const {
  if (count == 1) return "";
  return fmt::format("{} {} of {}", parts_.empty() ? "fragment" : "part", row + 1, count);
}

}  // namespace neuroshard::runtime
