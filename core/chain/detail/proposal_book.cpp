#include "core/chain/detail/proposal_book.h"

namespace neuroshard::chain {

Verdict ProposalBook::compare(const Proposal& proposal) const {
  std::optional<Hash256> before = block_of(proposal.view);
  if (const auto held = held_.find(proposal.view); held != held_.end()) before = held->second.block->hash;
  if (!before) return Verdict::Taken;
  return *before == proposal.block->hash ? Verdict::Known : Verdict::NotLeader;
}

std::optional<Hash256> ProposalBook::block_of(std::uint32_t view) const {
  const auto at = taken_.find(view);
  return at == taken_.end() ? std::nullopt : std::optional(at->second);
}

std::optional<Proposal> ProposalBook::release(std::uint32_t view) {
  auto held = held_.extract(view);
  if (held.empty()) return std::nullopt;
  return std::move(held.mapped());
}

void ProposalBook::forget_before(std::uint32_t taken, std::uint32_t held) {
  taken_.erase(taken_.begin(), taken_.lower_bound(taken));
  held_.erase(held_.begin(), held_.lower_bound(held));
}

}  // namespace neuroshard::chain
