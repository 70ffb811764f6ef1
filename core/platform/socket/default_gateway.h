// The router that this machine's packets to the world go through. Linux (/proc/net/route).
#pragma once

#include "core/platform/socket/ip_address.h"

namespace neuroshard::platform {

// The IPv4 gateway of the default route with the lowest metric. NotFound: there is none, so this machine has
// no IPv4 connection to the world, or a direct one.
Expected<IpAddress> default_gateway();

// The same from the text of such a table, for tests.
Expected<IpAddress> gateway_in_route_table(std::string_view table);

}  // namespace neuroshard::platform
