// Whether this node may dial an address that other nodes name. Records are signed by strangers, so without
// limits they would make all nodes dial a victim. The gate refuses addresses that no node of the internet has,
// and bounds the dials that nobody answers, per address and per address group, whatever ids they are for.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>

#include "core/base/clock.h"
#include "core/base/expected.h"
#include "core/net/hashed_buckets.h"
#include "core/platform/socket/ip_address.h"

namespace neuroshard::net {

struct DialRules {
  bool one_lan = false;  // a private network: private addresses and all ports, and nothing is counted
  // Whether an interface of this machine is in the address's subnet; null: none is.
  std::function<bool(const platform::IpAddress&)> on_own_subnet = nullptr;
};

struct DialLimits {
  double address_burst = 24, address_per_second = 1.0 / 30;
  double group_burst = 48, group_per_second = 1.0 / 15;  // of an address group (net/address_group.h)
  std::size_t buckets = 2048;                            // of each kind; addresses share them by a keyed hash
};

inline constexpr std::uint16_t least_public_port = 1024;  // those below belong to services of other kinds

class DialGate {
 public:
  // clock outlives it.  Threads: one.
  DialGate(DialRules rules, const Clock& clock, std::uint64_t seed, DialLimits limits = {});

  // The user's configuration names this endpoint, so it passes, also where other nodes name it: as the relay of a
  // node, for example. The newest `most_named` are kept.
  void name(const platform::Endpoint& at);
  // Denied: another node's word is not enough to dial there; the message says why.
  Expected<void> check(const platform::Endpoint& at) const;
  // Checks, and counts these dials. Denied, Exhausted.
  Expected<void> admit(const platform::Endpoint& at, int dials = 1);
  // The expected node answered there: the dials count no longer.
  void answered(const platform::Endpoint& at, int dials = 1);

 private:
  static constexpr std::size_t most_named = 64;

  bool is_named(const platform::Endpoint& at) const;
  TokenBucket& of_address(const platform::IpAddress& ip);
  TokenBucket* of_group(const platform::IpAddress& ip);

  const DialRules rules_;
  const Clock& clock_;
  HashedBuckets addresses_, groups_;
  std::deque<platform::Endpoint> named_;
};

}  // namespace neuroshard::net
