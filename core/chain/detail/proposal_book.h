// The proposals of one height by view: the first that each leader made. Those of views after the next wait as
// they came, neither checked nor judged. The caller bounds the views. Threads: one.
#pragma once

#include <cstdint>
#include <map>
#include <optional>

#include "core/chain/agreement_items.h"
#include "core/chain/verdict.h"

namespace neuroshard::chain {

class ProposalBook {
 public:
  // Taken: the first of its view. Known: the same came before. NotLeader: another one did.
  Verdict compare(const Proposal& proposal) const;
  void take(std::uint32_t view, const Hash256& block) { taken_[view] = block; }
  std::optional<Hash256> block_of(std::uint32_t view) const;  // taken, not held

  void hold(const Proposal& proposal) { held_.emplace(proposal.view, proposal); }
  // The one held for this view, which is held no longer.
  std::optional<Proposal> release(std::uint32_t view);
  void forget_before(std::uint32_t taken, std::uint32_t held);

 private:
  std::map<std::uint32_t, Hash256> taken_;
  std::map<std::uint32_t, Proposal> held_;
};

}  // namespace neuroshard::chain
