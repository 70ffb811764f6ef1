// Nodes of one local network find each other by multicast DNS (mdns_message.h), without a daemon: each
// answers for itself. A node is dialled at the source address of its answer, which must be in a network of
// this computer, so an answer can't direct dials elsewhere.
//
// All computers of the local network can see that this one runs a node, and of which network.
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
  Duration poll = std::chrono::milliseconds(250);  // between two reads of the socket
};

// Both outlive it.  Errors: Io (there is no multicast here).
Expected<std::unique_ptr<Rendezvous>> make_local_discovery(Executor& executor, const Clock& clock,
                                                           LocalDiscoveryOptions options);

}  // namespace neuroshard::rendezvous
