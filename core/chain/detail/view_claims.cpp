#include "core/chain/detail/view_claims.h"

#include <algorithm>

namespace neuroshard::chain {

bool ViewClaims::join(std::size_t position, std::uint32_t view) {
  std::optional<std::uint32_t>& newest = joined_[position];
  if (newest && *newest >= view) return false;
  newest = view;
  return true;
}

void ViewClaims::say(std::size_t position, std::uint32_t view) {
  std::optional<std::uint32_t>& newest = said_[position];
  newest = newest ? std::max(*newest, view) : view;
}

std::uint64_t ViewClaims::joined_units(std::uint32_t view) const {
  std::uint64_t units = 0;
  for (std::size_t i = 0; i < joined_.size(); ++i)
    if (joined_[i] && *joined_[i] >= view) units += committee_->members()[i].units;
  return units;
}

std::uint64_t ViewClaims::units_in(std::uint32_t view) const {
  std::uint64_t units = 0;
  for (std::size_t i = 0; i < joined_.size(); ++i)
    if (const auto newest = std::max(joined_[i], said_[i]); newest && *newest >= view)
      units += committee_->members()[i].units;
  return units;
}

std::optional<std::uint32_t> ViewClaims::reached() const {
  std::vector<std::pair<std::uint32_t, std::uint64_t>> claims;  // view, units
  for (std::size_t i = 0; i < joined_.size(); ++i)
    if (const auto newest = std::max(joined_[i], said_[i]))
      claims.emplace_back(*newest, committee_->members()[i].units);
  std::sort(claims.rbegin(), claims.rend());
  std::uint64_t units = 0;
  for (const auto& [view, more] : claims) {
    units += more;
    if (committee_->has_honest(units) || !committee_->is_quorum(committee_->units() - units)) return view;
  }
  return std::nullopt;
}

}  // namespace neuroshard::chain
