// A host of peers with a key of its own that is no member: what fuzz_client and honest_peer call a node with.
#pragma once

#include <memory>
#include <utility>

#include "core/crypto/keys.h"
#include "core/runtime/peer_host.h"
#include "core/runtime/runtime_services.h"

namespace neuroshard::test {

// Errors: those of PeerHost::start().
inline Expected<std::unique_ptr<runtime::PeerHost>> start_stranger_host(
    const Hash256& network, const runtime::RuntimeServices& services) {
  runtime::PeerHostOptions host;
  host.member = false;
  host.swarm.network_id = network;
  host.swarm.one_lan = true;
  return runtime::PeerHost::start(crypto::KeyPair::generate(services.entropy), services, std::move(host));
}

}  // namespace neuroshard::test
