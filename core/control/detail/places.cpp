#include "core/control/detail/places.h"

#include <utility>

#include "core/base/check.h"

namespace neuroshard::control::detail {

bool Places::take(const std::string& invitation) {
  const std::lock_guard lock(mutex_);
  const auto at = taken_.find(invitation);
  const std::size_t has = at == taken_.end() ? 0 : at->second;
  const bool is_own = invitation.empty();
  if (is_own ? has >= own_ : has >= (invited_ + 1) / 2 || taken_by_invited_ >= invited_) return false;
  ++taken_[invitation];
  if (!is_own) ++taken_by_invited_;
  return true;
}

void Places::give_back(const std::string& invitation) {
  const std::lock_guard lock(mutex_);
  const auto at = taken_.find(invitation);
  NS_CHECK(at != taken_.end());
  if (--at->second == 0) taken_.erase(at);
  if (!invitation.empty()) --taken_by_invited_;
}

Place::Place(Places& places, std::string invitation)
    : places_(places), invitation_(std::move(invitation)), ok_(places_.take(invitation_)) {}

Place::~Place() {
  if (ok_) places_.give_back(invitation_);
}

}  // namespace neuroshard::control::detail
