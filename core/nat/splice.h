// Joins two connections: bytes pass in both directions, unread, within limits of memory, bytes and time. The
// relay joins a caller and a callee; a node joins a relayed or punched connection and its own server's port.
#pragma once

#include <vector>

#include "core/platform/socket/socket_wait.h"
#include "core/platform/socket/tcp_socket.h"

namespace neuroshard::nat {

struct SpliceLimits {
  std::uint64_t bytes = std::uint64_t{8} << 30;  // both directions together
  Duration idle = std::chrono::seconds(60);
  Duration total = std::chrono::hours(2);
};

// Threads: one.
class Splice {
 public:
  static constexpr std::size_t buffer_bytes = 64 << 10;  // waiting for a slow reader, each direction

  // `early…`: bytes that arrived from a side after those that were read already.
  Splice(platform::TcpSocket a, platform::TcpSocket b, const SpliceLimits& limits, MonotonicTime now,
         ByteSpan early_from_a = {}, ByteSpan early_from_b = {});

  // Appends the two entries to wait for.
  void append_waits(std::vector<platform::SocketWait>& waits) const;
  // After the wait, with these two entries: moves the bytes that can be moved. False when the splice is over;
  // both ends are closed then.
  bool step(Span<const platform::SocketWait> two, MonotonicTime now);
  // It may not move bytes for this long, which does not count as idle.
  void pause(Duration time) { moved_ += time; }
  // When a time limit ends it, if no bytes pass.
  MonotonicTime next() const;

  std::uint64_t bytes() const { return bytes_; }
  const char* why_over() const { return why_; }  // static text; empty while it runs

 private:
  struct Side {
    platform::TcpSocket socket;
    Bytes unsent;  // to this side
    std::size_t sent = 0;
    bool ended = false;  // no more to read; the other side is closed when its unsent bytes are out
    bool told = false;
  };
  bool flush(Side& side);
  bool move(Side& from, Side& to, MonotonicTime now);
  void end(const char* why);

  Side a_, b_;
  SpliceLimits limits_;
  MonotonicTime started_, moved_;
  std::uint64_t bytes_ = 0;
  const char* why_ = "";
};

}  // namespace neuroshard::nat
