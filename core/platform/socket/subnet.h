// Kinds of addresses and subnets, and the subnets that this machine's interfaces are in.
#pragma once

#include <vector>

#include "core/platform/socket/ip_address.h"

namespace neuroshard::platform {

bool is_loopback(const IpAddress& address);
// May be dialled at all: not multicast, broadcast, unspecified or reserved.
bool is_unicast(const IpAddress& address);

// The addresses that share the first `bits` of 128 with `ip`; of IPv4 in the mapped form.
struct Subnet {
  IpAddress ip;
  int bits = 128;
};
bool is_within(const IpAddress& address, const Subnet& subnet);

// Of the interfaces that are up, without loopback; empty if the system does not say.
std::vector<Subnet> own_subnets();

}  // namespace neuroshard::platform
