#include "core/rounds/vector_book.h"

#include <algorithm>

#include "core/chain/rights.h"

namespace neuroshard::rounds {

void VectorBook::open(const chain::ChainTip& tip) {
  opening_ = tip.opening;
  round_ = tip.registry->round() + 1;
  most_members_ = tip.registry->members().size();
  vectors_.clear();
}

VectorBook::Taken VectorBook::take(const chain::Vector& vector, const chain::ChainTip& tip) {
  if (vector.round != round_)
    return {vector.round < round_ ? chain::Verdict::Past : chain::Verdict::Later, std::nullopt};
  if (vector.opening != opening_) return {chain::Verdict::OtherHistory, std::nullopt};
  const auto position = tip.committee->position(vector.voter);
  if (!position) return {chain::Verdict::NotMember, std::nullopt};
  const auto known = vectors_.find(vector.voter);
  if (known != vectors_.end() && known->second == vector) return {chain::Verdict::Known, std::nullopt};
  if (vector.members.size() > std::max(most_members_, tip.registry->members().size()))
    return {chain::Verdict::Inadmissible, std::nullopt};
  const crypto::PublicKey& key = tip.committee->members()[*position].key;
  if (!checks_.vector(vector, key, rules_.network)) return {chain::Verdict::BadSignature, std::nullopt};
  if (known != vectors_.end())
    return {chain::Verdict::Equivocation, chain::evidence_of(key, known->second, vector)};
  vectors_.emplace(vector.voter, vector);
  return {chain::Verdict::Taken, std::nullopt};
}

std::vector<chain::Vector> VectorBook::of(const chain::Committee& committee) const {
  std::vector<chain::Vector> vectors;
  for (const auto& [voter, vector] : vectors_)
    if (committee.position(voter)) vectors.push_back(vector);
  return vectors;
}

std::uint64_t VectorBook::units(const chain::Committee& committee) const {
  std::uint64_t units = 0;
  for (const auto& [voter, vector] : vectors_) units += committee.units_of(voter);
  return units;
}

std::vector<std::uint32_t> VectorBook::missing(const chain::Committee& committee,
                                               const ContributionBook& book,
                                               const chain::Registry& registry) const {
  std::vector<std::uint32_t> missing;
  for (const std::uint32_t member : chain::due_contributors(of(committee), committee))
    if (book.find(member) == nullptr && registry.find(member) != nullptr) missing.push_back(member);
  return missing;
}

std::vector<std::uint32_t> VectorBook::holders(std::uint32_t member) const {
  std::vector<std::uint32_t> holders;
  for (const auto& [voter, vector] : vectors_)
    if (std::binary_search(vector.members.begin(), vector.members.end(), member)) holders.push_back(voter);
  return holders;
}

std::optional<chain::CloseSection> VectorBook::close(const chain::Committee& committee,
                                                     const ContributionBook& book,
                                                     const chain::Registry& registry) const {
  chain::CloseSection close;
  close.round = round_;
  close.vectors = of(committee);
  if (!committee.is_quorum(units(committee))) return std::nullopt;
  for (const std::uint32_t member : chain::due_contributors(close.vectors, committee)) {
    if (registry.find(member) == nullptr) continue;
    const ContributionBook::Entry* entry = book.find(member);
    if (entry == nullptr) return std::nullopt;
    close.contributions.push_back(chain::entry_of(entry->contribution, member));
  }
  if (close.contributions.empty()) return std::nullopt;
  return close;
}

}  // namespace neuroshard::rounds
