// A net::PeerStream between two parts of one process: a node's own driver reaches its own stage as it reaches others.
//
// At most local_stream_bytes wait in each direction; a longer queue keeps a write from being done. The
// reason of a broken stream reaches the other end, whoever broke it off. Threads: the executor's, all members.
#pragma once

#include <memory>
#include <utility>

#include "core/base/executor.h"
#include "core/net/peer_channel.h"

namespace neuroshard::net {

inline constexpr std::size_t local_stream_bytes = 1u << 20;

// Two ends of one stream. The executor outlives both.
std::pair<std::shared_ptr<PeerStream>, std::shared_ptr<PeerStream>> make_local_stream(Executor& executor);

}  // namespace neuroshard::net
