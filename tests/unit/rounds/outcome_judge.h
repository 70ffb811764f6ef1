// A member that judges the results of a closed round, with all that it does so by. Header only.
#pragma once

#include <optional>
#include <set>
#include <vector>

#include "core/rounds/row_outcomes.h"
#include "tests/unit/rounds/computing_node.h"
#include "tests/unit/rounds/resized_round.h"

namespace neuroshard::test {

// Network: ChainRound or ResizedRound.
template <class Network>
struct OutcomeJudge {
  OutcomeJudge(const Network& of, const Round& round, const chain::ChainTip& opening, chain::RowSet held)
      : network(of),
        node(world, round, of.chain.rules(), held, ResizedRound::resize),
        outcomes(of.chain.rules(), node.checks, node.computed, held,
                 [this](std::uint32_t row) { return late.count(row) != 0; }) {
    node.book.open(opening);
    outcomes.open(opening);
  }
  void take(const chain::Attestation& attestation) {
    const chain::Verdict verdict = outcomes.take(chain::encode_attestation(attestation), network.tip());
    if (verdict != chain::Verdict::Taken) qFatal("an attestation is not taken");
  }
  std::optional<chain::Attestation> attest(std::size_t member) {
    return outcomes.attest(network.tip(), network.chain.key(member));
  }
  void compute() {
    node.computed.compute(network.tip());
    node.run();
  }
  rounds::RowOutcomes::Finding examine(const std::vector<chain::RowResult>& rows, bool binding) const {
    return outcomes.examine(network.tip(), {network.chain.registry().round() + 1, rows}, binding);
  }

  const Network& network;
  std::set<std::uint32_t> late;
  sim::World world;
  ComputingNode node;
  rounds::RowOutcomes outcomes;
};

}  // namespace neuroshard::test
