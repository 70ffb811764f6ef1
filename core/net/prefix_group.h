// The unit in which limits of strangers count addresses.
#pragma once

#include <cstdint>

#include "core/platform/socket/ip_address.h"

namespace neuroshard::net {

// Of a public address the part that one owner usually holds: /24 of IPv4, /48 of IPv6. Each loopback or private
// address is a group of its own, so machines of one home do not share a limit.
std::uint64_t limit_group(const platform::IpAddress& address);

}  // namespace neuroshard::net
