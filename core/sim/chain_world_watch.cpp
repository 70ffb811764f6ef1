#include <algorithm>

#include "core/sim/chain_world.h"

namespace neuroshard::sim {

bool ChainWorld::is_honest(const chain::Registry& registry, std::uint32_t member) const {
  const chain::MemberRecord* record = registry.find(member);
  const auto at = record == nullptr ? by_id_.end() : by_id_.find(record->id);
  return at != by_id_.end() && hosts_[at->second]->honest;
}

void ChainWorld::saw_anchor(std::size_t node, std::uint64_t round, std::uint32_t row,
                            const rounds::Anchor& anchor) {
  Host& own = *hosts_[node];
  auto& kept = own.disk.anchors[row];
  kept.emplace_front(round, anchor);
  const chain::ChainRules& rules = options_.chain.rules;
  const std::size_t earlier = rules.has_holders() ? chain::rounds_to_settle : rules.sizes.empty() ? 0 : 1;
  kept.resize(std::min(kept.size(), earlier + 1));
  if (!own.honest) return;
  const Hash256& hash = own.training->states().hash(row);
  const auto first =
      std::find_if(anchors_.begin(), anchors_.end(), [&](const auto& one) { return one.first == hash; });
  if (first == anchors_.end()) {
    anchors_.emplace_back(hash, anchor);
    if (anchors_.size() > 4 * fragments_.size()) anchors_.pop_front();
  } else if (first->second != anchor &&
             read_all(*first->second->bytes).value() != read_all(*anchor->bytes).value()) {
    ++seen_.wrong_anchors;
  }
  if (!newest_[row].second || round > newest_[row].first) newest_[row] = {round, anchor};
}

std::vector<float> ChainWorld::newest_weights() const {
  std::vector<float> weights;
  for (std::size_t row = 0; row < newest_.size(); ++row) {
    const rounds::Anchor& anchor = newest_[row].second ? newest_[row].second : initial_[row];
    const std::vector<float> part = outer::read_all(anchor->weights()).value();
    weights.insert(weights.end(), part.begin(), part.end());
  }
  return weights;
}

}  // namespace neuroshard::sim
