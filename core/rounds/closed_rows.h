// The new rows of a closed round as this node computes them: each as soon as all its payloads are here, or, where the round
// changes the size of the model, from the row alone.
//
// All services outlive it. Threads: the executor's; computations run in RoundWork.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "core/base/clock.h"
#include "core/base/lifetime.h"
#include "core/chain/history.h"
#include "core/rounds/contribution_book.h"
#include "core/rounds/row_states.h"

namespace neuroshard::rounds {

class ClosedRows {
 public:
  struct Events {
    std::function<void()> computed;  // after each step that ends
    // This node can't make a step now and tries again soon, or nobody can make it and the row is carried.
    std::function<void(const Error&)> cannot;
  };
  ClosedRows(const chain::ChainRules& rules, const ContributionBook& book, RowStates& states,
             const Clock& clock, Events events);

  // Forgets the rows of an earlier round.
  void clear() { steps_.clear(); }
  // Begins what can be computed now. tip: with a closed round.
  void compute(const chain::ChainTip& tip);
  // The result of a row of the closed round; row_index is its place among the round's rows. Nothing: not yet.
  std::optional<chain::RowResult> result(const chain::ChainTip& tip, std::size_t row_index,
                                         std::uint32_t row) const;

 private:
  struct RowStep {
    StepPtr step;  // null: not yet
    bool computing = false, failed = false;
    MonotonicTime next_try{};
    Hash256 payloads{};  // root of what it was made of
    Hash256 before{};    // the anchor that it was made of, where the size changes
  };
  using Begin = std::function<void(RowStates::Computed)>;
  void begin(std::uint32_t row, const Begin& computation);
  void compute_resized(const chain::Registry& registry, std::uint32_t row);
  bool can_begin(const chain::Registry& registry, std::uint32_t row) const;
  // Nothing: something is missing.
  std::optional<RowInputs> inputs_of(const chain::ChainTip& tip, std::size_t row_index,
                                     std::uint32_t row) const;

  const chain::ChainRules& rules_;
  const ContributionBook& book_;
  RowStates& states_;
  const Clock& clock_;
  const Events events_;
  std::map<std::uint32_t, RowStep> steps_;
  Lifetime lifetime_;
};

}  // namespace neuroshard::rounds
