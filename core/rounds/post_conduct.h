// What a node's posts say about how it behaves (net/conduct.h): the round's node answers each post with a
// verdict, and some verdicts are given to liars only.
#pragma once

#include "core/net/conduct.h"
#include "core/rounds/messages.h"

namespace neuroshard::rounds {

// `respond` for this call; a verdict that an honest program never gets is a fault of the caller. Being late,
// ahead, slow, no member, or of another codec is none. Two payloads are told by the round's node itself,
// which has the proof, whoever brought it (RoundPeers::proven_liar). `request` is used before this returns.
// `conduct` outlives the answer.
net::Respond judged(net::Conduct& conduct, const net::Caller& from, net::Method method, ByteSpan request,
                    net::Respond respond);

// For RoundPeers::proven_liar. Who told this node does not matter, so no address is blamed with it.
void blame_for_two_payloads(net::Conduct& conduct, const net::NodeId& liar);

}  // namespace neuroshard::rounds
