// A node that holds one row of a model of three, before and after round 7 of this row. Header only.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "core/rounds/row_states.h"
#include "tests/unit/rounds/fillable_spool.h"
#include "tests/unit/rounds/row_sources.h"

namespace neuroshard::test {

// Round 7 of row 2, and a node that holds this row.
struct StatesBench {
  static constexpr std::uint64_t values = 5000;
  static constexpr std::uint32_t row = 2;

  explicit StatesBench(bool traced = true, rounds::ResizeRow resize = nullptr)
      : states(
            {own.fetcher, own.work, own.executor, world.clock(), spool, steps, std::move(resize)},
            rules(traced), Round::id_of(99), {{0, 0, 9}, {1, 9, 9}, {row, 18, values}}, 0,
            [this](std::uint32_t of) { held.push_back(of); }, chain::RowSet::of({row})) {}
  static RoundOptions options() {
    RoundOptions options = Round::of(outer::Codec::Int8, 3);
    options.values = values;
    options.row = row;
    return options;
  }
  rounds::OuterRules rules(bool traced) const {
    rounds::OuterRules rules = round.rules;
    rules.traced = traced;
    return rules;
  }
  void run() { world.run_for(std::chrono::seconds(1)); }
  static chain::RowRecord record(const rounds::StepPtr& state, std::uint64_t of) {
    return {state->hash, of, {}};
  }
  chain::RowRecord before() const { return record(round.before_step, 6); }
  chain::RowRecord after() const { return record(round.step, 7); }
  // The same for another state of this round.
  rounds::StepPtr state_of(std::uint64_t number) const {
    const rounds::Anchor state =
        rounds::state_in_memory(Round::drawn(number, 1.0f, values), std::vector<float>(values));
    return *rounds::hashed_state(states.identity(row, number), state);
  }
  void settle(const chain::RowRecord& wanted, const std::vector<net::NodeId>& from = {}) {
    states.settle(row, wanted, from);
  }
  // Held at once.
  bool is_held(const chain::RowRecord& wanted) {
    const std::size_t calls = held.size();
    settle(wanted);
    return held.size() == calls + 1 && held.back() == row && states.holds(row, wanted.anchor);
  }
  void hold(const rounds::StepPtr& state, std::uint64_t of) {
    states.offer(row, of, state->state);
    settle(record(state, of));
    run();
    if (!states.holds(row, state->hash)) qFatal("the state is not held");
  }
  // The step from the state before. Another beacon, and another root of the payloads, are other inputs.
  void compute(std::uint8_t beacon = 0, std::vector<rounds::StepInput> inputs = {},
               const Hash256& payloads = {}) {
    if (inputs.empty()) inputs = round.inputs;
    states.compute(row, 7, {inputs, payloads}, round.limits, Hash256{beacon},
                   [this](const Expected<rounds::StepPtr>& step) { made.push_back(step); });
  }
  void resize(std::uint32_t to = 1) {
    states.resize(row, 7, 0, to, [this](const Expected<rounds::StepPtr>& step) { made.push_back(step); });
  }
  bool gives(rounds::PieceRequest::What what, const Hash256& of, std::uint64_t place = 0) const {
    return states.piece({row, what, of, place}).ok();
  }
  bool gives_right(rounds::PieceRequest::What what, const Hash256& of, std::uint64_t place) const {
    const rounds::PieceRequest request{row, what, of, place};
    const auto given = states.piece(request), right = own.sources.right(request);
    return given.ok() && right.ok() && *given == *right;
  }

  const Round round{options()};
  sim::World world;
  RowNode own{world, round};
  FillableSpool spool;
  std::shared_ptr<rounds::StepPool> steps = std::make_shared<rounds::StepPool>();
  std::vector<std::uint32_t> held;
  std::vector<Expected<rounds::StepPtr>> made;
  rounds::RowStates states;
};

}  // namespace neuroshard::test
