#include "core/chain/detail/known_blocks.h"

#include <algorithm>

namespace neuroshard::chain {

void KnownBlocks::know(const BlockPtr& block, std::uint32_t view) {
  const auto at = blocks_.try_emplace(block->hash, Known{block, view, {}}).first;
  at->second.view = std::max(at->second.view, view);
}

BlockPtr KnownBlocks::find(const Hash256& block) const {
  const auto at = blocks_.find(block);
  return at == blocks_.end() ? nullptr : at->second.block;
}

Judgement KnownBlocks::judgement(const Hash256& block, Demand demand) const {
  const auto at = blocks_.find(block);
  if (at == blocks_.end()) return Judgement::NotAsked;
  const auto& all = at->second.judgement;
  const std::size_t asked = static_cast<std::size_t>(demand);
  const auto end = all.begin() + static_cast<std::ptrdiff_t>(asked) + 1;
  return std::find(all.begin(), end, Judgement::Right) != end ? Judgement::Right : all[asked];
}

bool KnownBlocks::ask(const Hash256& block, Demand demand) {
  const Judgement now = judgement(block, demand);
  const auto at = blocks_.find(block);
  if (at == blocks_.end() || now == Judgement::Right || now == Judgement::Pending) return false;
  at->second.judgement[static_cast<std::size_t>(demand)] = Judgement::Pending;
  return true;
}

void KnownBlocks::answer(const Hash256& block, Demand demand, bool right) {
  const auto at = blocks_.find(block);
  if (at != blocks_.end())
    at->second.judgement[static_cast<std::size_t>(demand)] = right ? Judgement::Right : Judgement::Wrong;
}

void KnownBlocks::forget_before(std::uint32_t view, const Hash256* kept) {
  for (auto at = blocks_.begin(); at != blocks_.end();)
    at =
        at->second.view < view && (kept == nullptr || at->first != *kept) ? blocks_.erase(at) : std::next(at);
}

}  // namespace neuroshard::chain
