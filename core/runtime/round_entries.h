// The rounds of a chain as people see them: who contributed to each row, and who did not and why. A block says
// what is agreed; its entry is handed out once this node holds the state that the block names.
//
// Threads: one.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "core/chain/history.h"
#include "core/node/rounds_report.h"
#include "core/outer/aggregate.h"

namespace neuroshard::runtime {

class RoundEntries {
 public:
  // batch_tokens: of a training step. has_parts: a member holds some rows only.
  RoundEntries(const net::NodeId& self, std::uint64_t batch_tokens, bool has_parts = false);

  // before: the tip that the block followed. Blocks without a result say nothing.
  void on_block(const chain::ChainTip& before, const chain::ChainTip& tip, const chain::Block& block);
  // The entry of a row's new state, once. step: how this node judged the contributions; null: it fetched the state.
  std::optional<node::RoundEntry> take(std::uint32_t row, std::uint64_t round,
                                       const outer::AggregateReport* step);
  // Of the newest round. Of several rows the least, or all of them together where a member holds some rows only.
  std::uint32_t contributors() const;

 private:
  node::RoundEntry entry_of(const chain::ChainTip& before, const chain::ChainTip& tip,
                            const chain::RowResult& row, const std::vector<std::uint32_t>& counted) const;

  const net::NodeId self_;
  const std::uint64_t batch_tokens_;
  const bool has_parts_;
  std::map<std::pair<std::uint64_t, std::uint32_t>, node::RoundEntry> waiting_;  // by round and row
  std::map<std::uint32_t, std::vector<std::uint32_t>> newest_;  // by row: contributors of its newest round
};

}  // namespace neuroshard::runtime
