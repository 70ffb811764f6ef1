// Sockets with deadlines, for exchanges of a few messages. Each call waits until its deadline at most, and
// ends early (Cancelled) when its token is cancelled. No socket ever blocks.
#pragma once

#include <vector>

#include "core/base/cancel.h"
#include "core/base/clock.h"
#include "core/crypto/entropy.h"
#include "core/platform/socket/socket_wait.h"
#include "core/platform/socket/tcp_socket.h"

namespace neuroshard::nat {

// The context of an exchange. References must outlive it.
struct Io {
  const Clock& clock;
  crypto::Entropy& entropy;
  CancelToken cancel;

  MonotonicTime now() const { return clock.monotonic_now(); }
};

// Waits until one of `waits` is ready or until `until`: true when one is ready. Cancelled; Io.
Expected<bool> wait_until(const Io& io, Span<platform::SocketWait> waits, MonotonicTime until);

// An open connection. Timeout, Unavailable (refused, no route), Cancelled.
Expected<platform::TcpSocket> dial_until(const Io& io, const platform::Endpoint& remote,
                                         const platform::DialOptions& options, MonotonicTime deadline);
Expected<void> write_until(const Io& io, platform::TcpSocket& socket, ByteSpan bytes, MonotonicTime deadline);
// Reads what arrives first, at least one byte.
Expected<std::size_t> read_until(const Io& io, platform::TcpSocket& socket, MutableByteSpan target,
                                 MonotonicTime deadline);
// Reads exactly as many bytes as fit into `target`.
Expected<void> read_all_until(const Io& io, platform::TcpSocket& socket, MutableByteSpan target,
                              MonotonicTime deadline);

}  // namespace neuroshard::nat
