// The groups of addresses by which limits of strangers count: platform::prefix_group, which is a /24 of IPv4 and a
// /48 of IPv6, the part that one owner usually holds.
#pragma once

#include <cstdint>
#include <optional>

#include "core/platform/socket/ip_address.h"

namespace neuroshard::net {

// Every address has one: each loopback or private address is a group of its own, so machines of one home do not
// share a limit.
std::uint64_t limit_group(const platform::IpAddress& address);

// Nothing: the address is not counted. Addresses that are not of the internet are not, because behind a relay
// all callers have the loopback address, and a household or one LAN is one owner with many computers.
std::optional<std::uint64_t> counted_group(const platform::IpAddress& address, bool one_lan);

}  // namespace neuroshard::net
