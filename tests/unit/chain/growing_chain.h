// Chains whose members offer memory, and whose model changes its size by that. Header only.  Threads: one.
#pragma once

#include <vector>

#include "tests/unit/chain/chain_fixture.h"

namespace neuroshard::chain::testing {

// In one block, long after the last offer of any member. tiers: by node; one that offers this already says nothing.
inline void offer_memory(ChainFixture& chain, const std::vector<std::size_t>& nodes,
                         const std::vector<std::uint32_t>& tiers) {
  const std::uint64_t from = chain.registry().height() + offer_pause_blocks;
  while (chain.registry().height() < from)
    if (!chain.round_of(nodes)) qFatal("no round");
  std::vector<Statement> offers;
  for (std::size_t i = 0; i < tiers.size(); ++i)
    if (chain.member(nodes[i])->memory_tiers != tiers[i])
      offers.push_back(chain.statement(nodes[i], Offer{tiers[i]}));
  if (!chain.append(ChainFixture::body_of(offers)).ok()) qFatal("no offers");
}

// Until the rule changes the size.
inline void begin_change_of_size(ChainFixture& chain, const std::vector<std::size_t>& nodes) {
  while (!chain.registry().size().changing)
    if (!chain.round_of(nodes)) qFatal("no round");
}

// The result of that: each row has an anchor of the other size.
inline void end_change_of_size(ChainFixture& chain) {
  BlockBody body;
  body.result.emplace();
  body.result->round = chain.registry().round() + 1;
  for (std::uint32_t number = 0; number < chain.rules().rows; ++number) {
    RowResult row;
    row.row = number;
    row.anchor.fill(static_cast<std::uint8_t>(100 + number));
    body.result->rows.push_back(row);
  }
  if (!chain.append(body).ok()) qFatal("no change of size");
}

}  // namespace neuroshard::chain::testing
