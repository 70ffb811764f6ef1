// A member of a chain with what it computes the rows of a closed round with, over virtual time. Header only.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "core/rounds/closed_rows.h"
#include "tests/unit/rounds/chain_round.h"
#include "tests/unit/rounds/fillable_spool.h"
#include "tests/unit/rounds/row_sources.h"

namespace neuroshard::test {

struct ComputingNode {
  // round: of row 0; each other row has as many values.
  ComputingNode(sim::World& on, const Round& round, const chain::ChainRules& of, chain::RowSet held = {},
                rounds::ResizeRow resize = nullptr)
      : world(on),
        rules(of),
        own(world, round),
        states(
            {own.fetcher, own.work, own.executor, world.clock(), spool, steps, std::move(resize)},
            outer_rules(round, rules), Round::id_of(99), shapes(round, rules), 0, [](std::uint32_t) {}, held),
        book(rules, shapes(round, rules), round.rules.codec, checks, pool, held),
        computed(rules, book, states, world.clock(),
                 {[this] { ++ended; }, [this](const Error& error) { failures.push_back(error); }}) {}

  static rounds::OuterRules outer_rules(const Round& round, const chain::ChainRules& of) {
    rounds::OuterRules made = round.rules;
    made.traced = of.has_holders();
    return made;
  }
  static std::vector<rounds::RowShape> shapes(const Round& round, const chain::ChainRules& of) {
    std::vector<rounds::RowShape> all;
    for (std::uint32_t row = 0; row < of.rows; ++row) all.push_back({row, row * round.values, round.values});
    return all;
  }
  void run() { world.run_for(std::chrono::seconds(1)); }
  // It has the row's state with this anchor on its disk.
  void hold(std::uint32_t row, const chain::RowRecord& wanted, rounds::Anchor state) {
    states.offer(row, wanted.changed_round, std::move(state));
    states.settle(row, wanted, {});
    run();
    if (!states.holds(row, wanted.anchor)) qFatal("the state has another anchor");
  }
  // This holder's contribution to the chain's round, and the payload where it is wanted.
  void take(const ChainRound& chain, std::size_t holder) {
    const auto held = std::make_shared<const rounds::HeldContribution>(chain.contribution(holder));
    if (book.take(held, chain.opening).verdict != chain::Verdict::Taken) qFatal("no contribution");
  }
  void take_payload(const ChainRound& chain, std::size_t holder) {
    const std::uint32_t member = chain.chain.number(chain.holders[holder]);
    const ByteSourcePtr payload = in_memory(chain.round->payloads[holder]);
    const auto reading = rounds::read_payload(chain.id(chain.holders[holder]), *payload);
    if (!book.take_payload(member, 0, payload, *reading)) qFatal("no payload");
  }
  // All that row 0 is made of.
  void take_all(const ChainRound& chain) {
    for (std::size_t holder = 0; holder < chain.holders.size(); ++holder) {
      take(chain, holder);
      take_payload(chain, holder);
    }
  }

  sim::World& world;
  const chain::ChainRules& rules;
  RowNode own;
  FillableSpool spool;  // of new states
  std::shared_ptr<rounds::StepPool> steps = std::make_shared<rounds::StepPool>();
  chain::SignatureChecks checks;
  rounds::RoundPool pool;
  rounds::RowStates states;
  rounds::ContributionBook book;
  int ended = 0;  // computations whose result counts
  std::vector<Error> failures;
  rounds::ClosedRows computed;
};

}  // namespace neuroshard::test
