// A node's way out that writes what its rounds say to a file, for a fuzzer of the protocol.
#pragma once

#include <memory>
#include <string>

#include "core/net/peer_caller.h"

namespace neuroshard::test {

// out outlives it.
std::unique_ptr<net::PeerCaller> make_recorder(net::PeerCaller& out, const std::string& file);

}  // namespace neuroshard::test
