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

VectorBook::Taken VectorBook::take(chain::Vector vector, const chain::ChainTip& tip) {
  if (vector.round != round_)
    return {vector.round < round_ ? chain::Verdict::Past : chain::Verdict::Later, std::nullopt};
  if (vector.opening != opening_) return {chain::Verdict::OtherHistory, std::nullopt};
  const auto position = tip.committee->position(vector.voter);
  if (!position) return {chain::Verdict::NotMember, std::nullopt};
  const auto known = vectors_.find(vector.voter);
  if (known != vectors_.end() && *known->second == vector) return {chain::Verdict::Known, std::nullopt};
  if (vector.members.size() > std::max(most_members_, tip.registry->members().size()))
    return {chain::Verdict::Inadmissible, std::nullopt};
  const crypto::PublicKey& key = tip.committee->members()[*position].key;
  if (!checks_.vector(vector, key, rules_.network)) return {chain::Verdict::BadSignature, std::nullopt};
  if (known != vectors_.end())
    return {chain::Verdict::Equivocation, chain::evidence_of(key, *known->second, vector)};
  const std::uint32_t voter = vector.voter;
  vectors_.emplace(voter, pool_.hold(std::move(vector)));
  order_.push_back(voter);
  return {chain::Verdict::Taken, std::nullopt};
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
    count_.tally.add(*vectors_.at(voter), units);
  }
  count_.due = count_.tally.due(committee);
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
  for (const std::uint32_t member : count(committee).due)
    if (book.find(member) == nullptr && registry.find(member) != nullptr) missing.push_back(member);
  return missing;
}

std::vector<std::uint32_t> VectorBook::holders(std::uint32_t member) const {
  std::vector<std::uint32_t> holders;
  for (const auto& [voter, vector] : vectors_)
    if (std::binary_search(vector->members.begin(), vector->members.end(), member)) holders.push_back(voter);
  return holders;
}

bool VectorBook::can_close(const chain::Committee& committee, const ContributionBook& book,
                           const chain::Registry& registry) const {
  if (!committee.is_quorum(units(committee))) return false;
  Count& counted = count(committee);
  // Contributions only come.
  if (counted.complete_with > 0 && counted.complete_with <= book.all().size()) return true;
  bool any = false;
  for (const std::uint32_t member : counted.due) {
    if (registry.find(member) == nullptr) continue;
    if (book.find(member) == nullptr) return false;
    any = true;
  }
  if (any) counted.complete_with = book.all().size();
  return any;
}

std::optional<chain::CloseSection> VectorBook::close(const chain::Committee& committee,
                                                     const ContributionBook& book,
                                                     const chain::Registry& registry) const {
  if (!can_close(committee, book, registry)) return std::nullopt;
  chain::CloseSection close;
  close.round = round_;
  for (const auto& [voter, vector] : vectors_)
    if (committee.units_of(voter) > 0) close.vectors.push_back(*vector);
  for (const std::uint32_t member : count(committee).due)
    if (registry.find(member) != nullptr)
      close.contributions.push_back(chain::entry_of(*book.find(member)->contribution, member));
  return close;
}

}  // namespace neuroshard::rounds
