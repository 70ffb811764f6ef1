// Nodes of one local network find each other by multicast DNS (mdns_message.h), without a daemon: each
// answers for itself. Whoever answers is dialled at the address that the answer came from, which has to be of
// a network that this computer is in; so an answer leads nobody anywhere else.
//
// It tells everybody in the local network that this computer runs a node, and of which network.
#pragma once

#include <memory>
#include <string>

#include "core/base/bytes.h"
#include "core/base/clock.h"
#include "core/base/executor.h"
#include "core/rendezvous/rendezvous.h"

namespace neuroshard::rendezvous {

struct LocalDiscoveryOptions {
  Hash256 network_id{};
  Hash256 node_id{};
  Duration poll = std::chrono::milliseconds(250);  // how often the socket is read
};

// Both outlive it.  Errors: Io (there is no multicast here).
Expected<std::unique_ptr<Rendezvous>> make_local_discovery(Executor& executor, const Clock& clock,
                                                           LocalDiscoveryOptions options);

}  // namespace neuroshard::rendezvous
