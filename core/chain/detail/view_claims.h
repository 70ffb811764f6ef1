// Which views the members of a committee work in, as they say themselves: by NewViews, which a leader counts,
// and by their status, which only says where they are. Threads: one.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/chain/committee.h"

namespace neuroshard::chain {

class ViewClaims {
 public:
  explicit ViewClaims(CommitteePtr committee)
      : committee_(std::move(committee)), joined_(committee_->size()), said_(committee_->size()) {}

  // A NewView of this view. False: not later than what this member said in one before.
  bool join(std::size_t position, std::uint32_t view);
  void say(std::size_t position, std::uint32_t view);

  // Units of the members whose NewViews are of this view or a later one.
  std::uint64_t joined_units(std::uint32_t view) const;
  // The same, with what members only said.
  std::uint64_t units_in(std::uint32_t view) const;
  // The greatest view that enough members have reached: one of them must be honest, or the rest is no quorum.
  // Byzantine members below a third move it no further than an honest member is.
  std::optional<std::uint32_t> reached() const;

 private:
  CommitteePtr committee_;
  std::vector<std::optional<std::uint32_t>> joined_, said_;  // by position
};

}  // namespace neuroshard::chain
