// An outgoing caller that equivocates, with two signed payloads for one round: every second of those whom it
// tells of its contribution hears of another one. core/sim/round_liar.h has the same for the simulated
// network.
#pragma once

#include <memory>

#include "core/crypto/keys.h"
#include "core/net/peer_caller.h"

namespace neuroshard::test {

// out and key outlive it. One line of JSON on standard error for each lie: {"lied": round, "attack":
// "two-payloads"}.  Threads: the executor's.
std::unique_ptr<net::PeerCaller> make_two_payloads(net::PeerCaller& out, const crypto::KeyPair& key,
                                                   const Hash256& network);

}  // namespace neuroshard::test
