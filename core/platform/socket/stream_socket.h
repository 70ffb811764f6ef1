// Connected pairs of byte streams between processes of this machine. POSIX (AF_UNIX).
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "core/base/bytes.h"
#include "core/base/clock.h"
#include "core/base/expected.h"

namespace neuroshard::platform {

// One end; closes it. Never blocks.  Threads: one at a time.
class StreamSocket {
 public:
  // Both ends stay in this process; children get only what they are given (child_process.h).  Errors: Io.
  static Expected<std::pair<StreamSocket, StreamSocket>> pair();
  // An end that this process was started with.  InvalidArgument when there is no such descriptor.
  static Expected<StreamSocket> adopt(int descriptor);

  StreamSocket() = default;
  StreamSocket(StreamSocket&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  StreamSocket& operator=(StreamSocket&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    return *this;
  }
  ~StreamSocket();

  int descriptor() const { return descriptor_; }
  void close();

  // Bytes moved; 0 when it would have to wait.  Unavailable: the other end is closed; Io.
  Expected<std::size_t> read_some(MutableByteSpan target);
  Expected<std::size_t> write_some(ByteSpan bytes);

 private:
  int descriptor_ = -1;
};

struct SocketEvent {
  const StreamSocket* socket = nullptr;
  bool read = false, write = false;  // asked for; after the wait: possible now, or the other end is closed
};
// Until one of the events, at most `limit`; false when time ran out or a signal came.
Expected<bool> wait_for_sockets(std::vector<SocketEvent>& events, Duration limit);

}  // namespace neuroshard::platform
