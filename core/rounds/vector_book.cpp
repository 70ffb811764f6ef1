#include "core/rounds/vector_book.h"

#include <algorithm>

#include "core/chain/rights.h"

namespace neuroshard::rounds {

void VectorBook::open(const chain::ChainTip& tip) {
  opening_ = tip.opening;
  round_ = tip.registry->round() + 1;
  most_members_ = tip.registry->members().size();
  vectors_.clear();
  order_.clear();
  count_ = {};
}

Taken VectorBook::take(const HeldVectorPtr& held, const chain::ChainTip& tip) {
  const chain::Vector& vector = held->get();
  if (vector.round != round_) return {vector.round < round_ ? chain::Verdict::Past : chain::Verdict::Later};
  if (vector.opening != opening_) return {chain::Verdict::OtherHistory};
  const auto position = tip.committee->position(vector.voter);
  // A member that comes back may know the block with its return before this node does.
  if (!position)
    return {tip.registry->find(vector.voter) != nullptr ? chain::Verdict::Later : chain::Verdict::NotMember};
  const auto known = vectors_.find(vector.voter);
  const bool is_known = known != vectors_.end() && (known->second == held || known->second->get() == vector);
  if (is_known) return {chain::Verdict::Known};
  if (vector.members.size() > most_members(*tip.registry)) return {chain::Verdict::Inadmissible};
  // No block could have it, so one vector would hold up each leader's close.
  if (!vector.members.empty() && vector.members.back() >= tip.registry->next_member())
    return {chain::Verdict::Inadmissible};
  if (!chain::may_withhold(*tip.registry, vector)) return {chain::Verdict::Inadmissible};
  const crypto::PublicKey& key = tip.committee->members()[*position].key;
  if (!checks_.vector(held->claim(), key, rules_.network)) return {chain::Verdict::BadSignature};
  if (known != vectors_.end())
    return {chain::Verdict::Equivocation, chain::evidence_of(key, known->second->get(), vector)};
  vectors_.emplace(vector.voter, held);
  order_.push_back(vector.voter);
  return {chain::Verdict::Taken};
}

VectorBook::Count& VectorBook::count(const chain::Committee& committee) const {
  if (count_.committee != &committee) {
    count_ = {};
    count_.committee = &committee;
  }
  if (count_.vectors == order_.size()) return count_;
  for (; count_.vectors < order_.size(); ++count_.vectors) {
    const std::uint32_t voter = order_[count_.vectors], units = committee.units_of(voter);
    if (units == 0) continue;
    count_.units += units;
    count_.tally.add(vectors_.at(voter)->get(), units);
  }
  std::vector<std::uint32_t> due = count_.tally.due(committee);
  if (due == count_.due) return count_;
  count_.due = std::move(due);
  count_.complete_with = 0;
  return count_;
}

std::uint64_t VectorBook::units(const chain::Committee& committee) const {
  return count(committee).units;
}

std::vector<std::uint32_t> VectorBook::missing(const chain::Committee& committee,
                                               const ContributionBook& book,
                                               const chain::Registry& registry) const {
  std::vector<std::uint32_t> missing;
  const Count& counted = count(committee);
  if (counted.is_complete(book)) return missing;
  for (const std::uint32_t member : counted.due)
    if (book.find(member) == nullptr && registry.find(member) != nullptr) missing.push_back(member);
  return missing;
}

std::vector<std::uint32_t> VectorBook::holders(std::uint32_t member, std::size_t first,
                                               std::size_t most) const {
  std::vector<std::uint32_t> holders;
  for (std::size_t i = 0; i < order_.size() && holders.size() < most; ++i) {
    const std::uint32_t voter = order_[(first + i) % order_.size()];
    const std::vector<std::uint32_t>& members = vectors_.at(voter)->get().members;
    if (std::binary_search(members.begin(), members.end(), member)) holders.push_back(voter);
  }
  std::sort(holders.begin(), holders.end());
  return holders;
}

std::vector<chain::Vector> VectorBook::that_withhold() const {
  std::vector<chain::Vector> vectors;
  for (const auto& [voter, held] : vectors_)
    if (!held->get().withheld.empty()) vectors.push_back(held->get());
  return vectors;
}

bool VectorBook::can_close(const chain::Committee& committee, const ContributionBook& book,
                           const chain::Registry& registry) const {
  if (!committee.is_quorum(units(committee))) return false;
  Count& counted = count(committee);
  if (counted.is_complete(book)) return true;
  const bool is_missing = std::any_of(counted.due.begin(), counted.due.end(), [&](std::uint32_t member) {
    return registry.find(member) != nullptr && book.find(member) == nullptr;
  });
  if (is_missing) return false;
  counted.complete_with = book.all().size();
  return true;
}

std::optional<chain::CloseSection> VectorBook::close(const chain::Committee& committee,
                                                     const ContributionBook& book,
                                                     const chain::Registry& registry) const {
  if (!can_close(committee, book, registry)) return std::nullopt;
  chain::CloseSection close;
  close.round = round_;
  for (const auto& [voter, vector] : vectors_)
    if (committee.units_of(voter) > 0) close.vectors.push_back(vector->get());
  for (const std::uint32_t member : count(committee).due)
    if (registry.find(member) != nullptr)
      close.contributions.push_back(book.find(member)->held->entry_of(member));
  return close;
}

}  // namespace neuroshard::rounds
