#include "core/nat/io.h"

#include <fmt/format.h>

#include <algorithm>

namespace neuroshard::nat {
namespace {

using platform::SocketWait;
using platform::TcpSocket;

// The longest delay until a cancellation is noticed.
constexpr Duration check_period = std::chrono::milliseconds(100);

Expected<void> ready_until(const Io& io, const TcpSocket& socket, bool to_write, MonotonicTime deadline,
                           const char* doing) {
  SocketWait wait{socket.descriptor(), !to_write, to_write, false};
  NS_ASSIGN_OR_RETURN(const bool ready, wait_until(io, Span<SocketWait>(&wait, 1), deadline));
  if (!ready) return make_error(ErrorCode::Timeout, fmt::format("no answer in time while {}", doing));
  return {};
}

}  // namespace

Expected<bool> wait_until(const Io& io, Span<SocketWait> waits, MonotonicTime until) {
  const std::vector<SocketWait> asked(waits.begin(), waits.end());
  while (true) {
    if (io.cancel.cancelled()) return make_error(ErrorCode::Cancelled, "stopped");
    const Duration left = until - io.now();
    std::copy(asked.begin(), asked.end(), waits.begin());
    NS_ASSIGN_OR_RETURN(const bool ready, platform::wait_for(waits, std::min(left, check_period)));
    if (ready) return true;
    if (left <= Duration(0)) return false;
  }
}

Expected<TcpSocket> dial_until(const Io& io, const platform::Endpoint& remote,
                               const platform::DialOptions& options, MonotonicTime deadline) {
  NS_ASSIGN_OR_RETURN(TcpSocket socket, TcpSocket::dial(remote, options));
  while (true) {
    NS_RETURN_IF_ERROR(ready_until(io, socket, true, deadline, "connecting"));
    NS_ASSIGN_OR_RETURN(const bool connected, socket.connected());
    if (connected) return socket;
  }
}

Expected<void> write_until(const Io& io, TcpSocket& socket, ByteSpan bytes, MonotonicTime deadline) {
  while (!bytes.empty()) {
    NS_ASSIGN_OR_RETURN(const std::size_t written, socket.write_some(bytes));
    bytes = bytes.subspan(written);
    if (!bytes.empty() && written == 0)
      NS_RETURN_IF_ERROR(ready_until(io, socket, true, deadline, "sending"));
  }
  return {};
}

Expected<std::size_t> read_until(const Io& io, TcpSocket& socket, MutableByteSpan target,
                                 MonotonicTime deadline) {
  while (true) {
    NS_ASSIGN_OR_RETURN(const std::size_t count, socket.read_some(target));
    if (count > 0) return count;
    NS_RETURN_IF_ERROR(ready_until(io, socket, false, deadline, "waiting for bytes"));
  }
}

Expected<void> read_all_until(const Io& io, TcpSocket& socket, MutableByteSpan target,
                              MonotonicTime deadline) {
  while (!target.empty()) {
    NS_ASSIGN_OR_RETURN(const std::size_t count, read_until(io, socket, target, deadline));
    target = target.subspan(count);
  }
  return {};
}

}  // namespace neuroshard::nat
