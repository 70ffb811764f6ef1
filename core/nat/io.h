// Sockets with deadlines, for exchanges of a few messages. Each call waits at most until its deadline and
// ends early (Cancelled) when its token says so; sockets are never made to block.
#pragma once

#include <vector>

#include "core/base/cancel.h"
#include "core/base/clock.h"
#include "core/crypto/entropy.h"
#include "core/platform/socket/socket_wait.h"
#include "core/platform/socket/tcp_socket.h"

namespace neuroshard::nat {

// What every exchange needs. References must outlive it.
struct Io {
  const Clock& clock;
  crypto::Entropy& entropy;
  CancelToken cancel;

  MonotonicTime now() const { return clock.monotonic_now(); }
};

// Until one of `waits` is ready or `until`: true when something is ready. Cancelled; Io.
Expected<bool> wait_until(const Io& io, Span<platform::SocketWait> waits, MonotonicTime until);

// A connection that stands. Timeout, Unavailable (refused, no way there), Cancelled.
Expected<platform::TcpSocket> dial_until(const Io& io, const platform::Endpoint& remote,
                                         const platform::DialOptions& options, MonotonicTime deadline);
Expected<void> write_until(const Io& io, platform::TcpSocket& socket, ByteSpan bytes, MonotonicTime deadline);
// Whatever comes first, at least one byte.
Expected<std::size_t> read_until(const Io& io, platform::TcpSocket& socket, MutableByteSpan target,
                                 MonotonicTime deadline);
// Exactly as many as fit into `target`.
Expected<void> read_all_until(const Io& io, platform::TcpSocket& socket, MutableByteSpan target,
                              MonotonicTime deadline);

}  // namespace neuroshard::nat
