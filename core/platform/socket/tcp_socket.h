// TCP connections to anywhere. Never blocks; wait with socket_wait.h.
#pragma once

#include <cstddef>
#include <optional>
#include <utility>

#include "core/base/bytes.h"
#include "core/platform/socket/ip_address.h"

namespace neuroshard::platform {

struct DialOptions {
  std::optional<Endpoint> local;  // dial from here; the system chooses otherwise
  bool share_port = false;        // other sockets of this process use the same local port (SO_REUSEPORT)
};

// One connection; closes itself. Small writes go out at once (TCP_NODELAY).  Threads: one at a time.
class TcpSocket {
 public:
  // Begins to dial. Busy: the local port is taken; Unavailable: no way there; Io.
  static Expected<TcpSocket> dial(const Endpoint& remote, const DialOptions& options = {});

  // A connection that stands already, and is this object's to close from now on.
  static TcpSocket adopt(int descriptor);

  TcpSocket() = default;
  TcpSocket(TcpSocket&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  TcpSocket& operator=(TcpSocket&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    return *this;
  }
  ~TcpSocket();

  bool is_open() const { return descriptor_ >= 0; }
  int descriptor() const { return descriptor_; }
  void close();
  // The descriptor, now the caller's to close.
  int release() { return std::exchange(descriptor_, -1); }
  Expected<Endpoint> local() const;
  Expected<Endpoint> remote() const;

  // True when the connection stands, false while it is being made; Timeout, Unavailable, Io when it failed.
  // Ask when the socket is ready for writing.
  Expected<bool> connected() const;

  // Bytes moved; 0 when it would have to wait. Unavailable: the other side closed; Io.
  Expected<std::size_t> read_some(MutableByteSpan target);
  Expected<std::size_t> write_some(ByteSpan bytes);
  // "No more from me": the other side reads the end after what was written.
  void shut_down_writing();

 private:
  friend class TcpListener;
  int descriptor_ = -1;
};

// Closes itself.  Threads: one at a time.
class TcpListener {
 public:
  static Expected<TcpListener> open(const Endpoint& local, bool share_port = false);

  TcpListener() = default;
  TcpListener(TcpListener&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  TcpListener& operator=(TcpListener&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    return *this;
  }
  ~TcpListener();

  int descriptor() const { return descriptor_; }
  Expected<Endpoint> local() const;
  struct Accepted {
    TcpSocket socket;
    Endpoint from;
  };
  // Nothing when nobody waits. Exhausted: this process has no descriptors left.
  Expected<std::optional<Accepted>> accept();

 private:
  int descriptor_ = -1;
};

}  // namespace neuroshard::platform
