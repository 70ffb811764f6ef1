// The votes of one height, counted by units. Each member has one vote per view and step: the first one that
// arrived. A member that signed two is remembered, so that its further votes cost no signature check.
//
// Holds a window of views; the caller bounds it. Threads: one.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "core/chain/committee.h"
#include "core/chain/evidence.h"
#include "core/chain/vote.h"

namespace neuroshard::chain {

class VoteLedger {
 public:
  explicit VoteLedger(CommitteePtr committee) : committee_(std::move(committee)) {}

  // This member's vote in that view and step; null: none yet.
  const SignedVote* find(std::size_t position, VoteStep step, std::uint32_t view) const;
  // Its vote of the highest view, the commit before the prepare; null: none.
  const SignedVote* newest(std::size_t position) const;
  // Its first vote in its view and step.
  void add(std::size_t position, const SignedVote& vote);

  struct Leading {
    Hash256 block{};
    std::uint64_t units = 0;
  };
  // The block with the most units in that view and step. No other one can have half of them.
  std::optional<Leading> leading(VoteStep step, std::uint32_t view) const;
  // Its votes, ascending by voter. height, previous: of all votes here.
  Quorum quorum(VoteStep step, std::uint32_t view, const Hash256& block) const;

  // Members of a quorum whose signatures hold that voted for another block in its place.
  std::vector<Evidence> contradictions(const Quorum& quorum) const;

  void forget_before(std::uint32_t view) { views_.erase(views_.begin(), views_.lower_bound(view)); }
  std::vector<std::uint32_t> views() const;

  void convict(std::size_t position) { convicted_.insert(position); }
  bool is_convicted(std::size_t position) const { return convicted_.count(position) != 0; }

 private:
  struct Votes {
    std::map<std::size_t, SignedVote> of;  // by position, which ascends with the number
    std::map<Hash256, std::uint64_t> units;
  };
  struct View {
    Votes prepares, commits;
  };
  const Votes* votes(VoteStep step, std::uint32_t view) const;

  CommitteePtr committee_;
  std::map<std::uint32_t, View> views_;
  std::set<std::size_t> convicted_;
};

}  // namespace neuroshard::chain
