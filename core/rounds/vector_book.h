// The voters' vectors of the round in progress, and the close section that follows from them. A second,
// different vector of one voter is evidence; the first one stays.
//
// Threads: one.
#pragma once

#include <algorithm>
#include <map>
#include <optional>
#include <vector>

#include "core/chain/rights.h"
#include "core/rounds/contribution_book.h"

namespace neuroshard::rounds {

class VectorBook {
 public:
  VectorBook(const chain::ChainRules& rules, chain::SignatureChecks& checks)
      : rules_(rules), checks_(checks) {}

  void open(const chain::ChainTip& tip);
  // Another committee than at the last question.
  void on_committee() { count_ = {}; }
  Taken take(const HeldVectorPtr& held, const chain::ChainTip& tip);
  bool has(std::uint32_t voter) const { return vectors_.count(voter) != 0; }
  const HeldVector* find(std::uint32_t voter) const {
    const auto found = vectors_.find(voter);
    return found == vectors_.end() ? nullptr : found->second.get();
  }
  // Units of the present committee's vectors; those of others do not count.
  std::uint64_t units(const chain::Committee& committee) const;
  std::size_t count() const { return vectors_.size(); }

  // By voter: those that say that a result is withheld.
  std::vector<chain::Vector> that_withhold() const;
  // Members that must be in the close, of which this node lacks the contribution: to be fetched first.
  // registry: before the close; a member that left it in mid-round is in no close, whatever the vectors say.
  std::vector<std::uint32_t> missing(const chain::Committee& committee, const ContributionBook& book,
                                     const chain::Registry& registry) const;
  // Voters whose vector names this member, ascending: `most` at most, those that follow the vector number `first` in
  // the order of arrival.
  std::vector<std::uint32_t> holders(std::uint32_t member, std::size_t first, std::size_t most) const;
  // That a vector of this round can list: of the opening block, or now. Members may be expelled in between.
  std::size_t most_members(const chain::Registry& registry) const {
    return std::max(most_members_, registry.members().size());
  }
  // Vectors of more than two thirds of the units are here, and all contributions that are due by them. There may be
  // none, as after a cut between all voters: none of them signs another vector, so the round closes without any.
  bool can_close(const chain::Committee& committee, const ContributionBook& book,
                 const chain::Registry& registry) const;
  // Nothing: it can't close.
  std::optional<chain::CloseSection> close(const chain::Committee& committee, const ContributionBook& book,
                                           const chain::Registry& registry) const;

 private:
  // The vectors counted so far in one committee: many callers ask while little changes.
  struct Count {
    const chain::Committee* committee = nullptr;
    std::size_t vectors = 0;  // counted, of order_
    std::uint64_t units = 0;
    chain::VectorTally tally;
    std::vector<std::uint32_t> due;
    std::size_t complete_with = 0;  // contributions: with so many none that is due was missing
    // Contributions only come.
    bool is_complete(const ContributionBook& book) const {
      return complete_with > 0 && complete_with <= book.all().size();
    }
  };
  Count& count(const chain::Committee& committee) const;

  const chain::ChainRules& rules_;
  chain::SignatureChecks& checks_;
  Hash256 opening_{};
  std::uint64_t round_ = 0;
  std::size_t most_members_ = 0;
  std::map<std::uint32_t, HeldVectorPtr> vectors_;  // by voter
  std::vector<std::uint32_t> order_;                // voters as they came
  mutable Count count_;
};

}  // namespace neuroshard::rounds
