#include "core/nat/mapping_keeper.h"

#include <fmt/format.h>

#include <algorithm>

namespace neuroshard::nat {

using Kind = MappingEvent::Kind;

std::vector<MappingEvent> MappingKeeper::step(const Io& io) {
  std::vector<MappingEvent> events;
  const MonotonicTime now = io.now();
  if (now < next_) return events;
  if (!mapping_ || now >= renew_) {
    make(io, events);
  } else {
    check(io, events);
  }
  return events;
}

void MappingKeeper::make(const Io& io, std::vector<MappingEvent>& events) {
  const std::uint16_t wanted = mapping_ ? mapping_->outside_port : wanted_outside_;
  auto mapped = mapper_.map(io, inside_port_, wanted, mapping_lease);
  if (!mapped.ok()) return failed(io, mapped.error(), events);
  mapping_ = *mapped;
  const MonotonicTime now = io.now();
  const bool ends = mapped->lease > std::chrono::seconds(0);
  // A router may be unable to tell that it forgot a mapping, so one without an end is renewed as well.
  renew_ = now + Duration(ends ? mapped->lease : mapping_lease) / 2;
  lease_end_ = ends ? now + Duration(mapped->lease) : MonotonicTime::max();
  const auto state = mapper_.check(io, *mapping_);
  if (!state.ok()) return failed(io, state.error(), events);
  retry_ = times_.first_retry;
  failures_ = 0;
  settle(state->outside, events);
  plan(now);
}

void MappingKeeper::check(const Io& io, std::vector<MappingEvent>& events) {
  const auto state = mapper_.check(io, *mapping_);
  if (!state.ok()) return failed(io, state.error(), events);
  if (state->lost) {
    events.push_back(
        {Kind::Lost, outside_.value_or(platform::Endpoint{}),
         fmt::format("the router forgot the {} mapping, by a restart or while this computer slept; "
                     "making it anew",
                     mapper_.name())});
    outside_.reset();
    return make(io, events);
  }
  const bool moved = outside_ && outside_->ip != state->outside;
  settle(state->outside, events);
  // The router was offline, perhaps by a restart that it can't tell of.
  if (moved) return make(io, events);
  plan(io.now());
}

void MappingKeeper::settle(const platform::IpAddress& ip, std::vector<MappingEvent>& events) {
  const platform::Endpoint now_outside{ip, mapping_->outside_port};
  if (outside_ == now_outside) return;
  const Kind kind = outside_ ? Kind::AddressChanged : Kind::Mapped;
  events.push_back({kind, now_outside,
                    outside_ ? fmt::format("the outside address changed from {} to {}", to_text(*outside_),
                                           to_text(now_outside))
                             : fmt::format("{} opened port {} of this computer as {}", mapper_.name(),
                                           inside_port_, to_text(now_outside))});
  outside_ = now_outside;
}

void MappingKeeper::failed(const Io& io, const Error& error, std::vector<MappingEvent>& events) {
  const MonotonicTime now = io.now();
  // The state of the router is unknown: the next step maps again, to the same port if it can.
  renew_ = MonotonicTime{};
  next_ = now + retry_;
  retry_ = std::min(2 * retry_, times_.last_retry);
  if (!outside_ || error.code != ErrorCode::Exhausted) ++failures_;
  if (outside_ && failures_ <= most_kept_failures && now < lease_end_) {
    next_ = std::min(next_, lease_end_);
  } else if (outside_) {
    events.push_back({Kind::Lost, *outside_, error.message, error});
    outside_.reset();
  } else {
    events.push_back({Kind::Failed, {}, error.message, error});
  }
}

void MappingKeeper::plan(MonotonicTime now) {
  next_ = std::min(now + times_.check, renew_);
}

Expected<void> MappingKeeper::release(const Io& io) {
  if (!mapping_) return {};
  const PortMapping mapping = *mapping_;
  mapping_.reset();
  outside_.reset();
  return mapper_.unmap(io, mapping);
}

}  // namespace neuroshard::nat
