#include "core/net/dial_gate.h"

#include <algorithm>

#include "core/base/bytes.h"
#include "core/net/address_group.h"
#include "core/platform/socket/subnet.h"

namespace neuroshard::net {

using platform::Endpoint;
using platform::IpAddress;

DialGate::DialGate(DialRules rules, const Clock& clock, std::uint64_t seed, DialLimits limits)
    : rules_(std::move(rules)),
      clock_(clock),
      addresses_(limits.buckets,
                 TokenBucket(limits.address_per_second, limits.address_burst, clock.monotonic_now()), seed),
      groups_(limits.buckets, TokenBucket(limits.group_per_second, limits.group_burst, clock.monotonic_now()),
              seed) {}

void DialGate::name(const Endpoint& at) {
  if (is_named(at)) return;
  if (named_.size() == most_named) named_.pop_front();
  named_.push_back(at);
}

bool DialGate::is_named(const Endpoint& at) const {
  return std::find(named_.begin(), named_.end(), at) != named_.end();
}

Expected<void> DialGate::check(const Endpoint& at) const {
  if (is_named(at)) return {};
  const auto denied = [](const char* why) { return make_error(ErrorCode::Denied, why); };
  if (!platform::is_unicast(at.ip)) return denied("that address is not one of a single computer");
  if (rules_.one_lan) return {};
  if (at.port < least_public_port) return denied("nodes of the internet listen at ports from 1024 on");
  if (platform::globally_routable(at.ip)) return {};
  if (platform::is_loopback(at.ip)) return denied("a loopback address leads to this computer itself");
  if (rules_.on_own_subnet && rules_.on_own_subnet(at.ip)) return {};
  return denied("a private address outside of this computer's own subnets is not dialled");
}

TokenBucket& DialGate::of_address(const IpAddress& ip) {
  return addresses_.of(load_le<std::uint64_t>(ip.bytes.data()), load_le<std::uint64_t>(ip.bytes.data() + 8));
}

TokenBucket* DialGate::of_group(const IpAddress& ip) {
  const auto group = counted_group(ip, rules_.one_lan);
  return group ? &groups_.of(*group) : nullptr;
}

Expected<void> DialGate::admit(const Endpoint& at, int dials) {
  NS_RETURN_IF_ERROR(check(at));
  if (rules_.one_lan || is_named(at)) return {};
  const MonotonicTime now = clock_.monotonic_now();
  TokenBucket& address = of_address(at.ip);
  TokenBucket* const group = of_group(at.ip);
  const bool has_room =
      address.available(now) >= dials && (group == nullptr || group->available(now) >= dials);
  if (!has_room)
    return make_error(ErrorCode::Exhausted,
                      "too many dials to that address range stay unanswered; it is tried again later");
  address.try_take(dials, now);
  if (group != nullptr) group->try_take(dials, now);
  return {};
}

void DialGate::answered(const Endpoint& at, int dials) {
  if (rules_.one_lan || is_named(at)) return;
  of_address(at.ip).give_back(dials);
  if (TokenBucket* const group = of_group(at.ip)) group->give_back(dials);
}

}  // namespace neuroshard::net
