#include "core/nat/splice.h"

#include <algorithm>
#include <array>

namespace neuroshard::nat {

using platform::SocketWait;
using platform::TcpSocket;

Splice::Splice(TcpSocket a, TcpSocket b, const SpliceLimits& limits, MonotonicTime now, ByteSpan early_from_a,
               ByteSpan early_from_b)
    : limits_(limits), started_(now), moved_(now) {
  a_.socket = std::move(a);
  b_.socket = std::move(b);
  b_.unsent.assign(early_from_a.begin(), early_from_a.end());
  a_.unsent.assign(early_from_b.begin(), early_from_b.end());
}

void Splice::append_waits(std::vector<SocketWait>& waits) const {
  // Back-pressure: reads nothing for a side that has unsent bytes.
  const auto entry = [](const Side& side, const Side& other) {
    const bool read = !side.ended && other.unsent.empty(), write = !side.unsent.empty();
    return SocketWait{read || write ? side.socket.descriptor() : -1, read, write, false};
  };
  waits.push_back(entry(a_, b_));
  waits.push_back(entry(b_, a_));
}

MonotonicTime Splice::next() const {
  return std::min(started_ + limits_.total, moved_ + limits_.idle);
}

void Splice::end(const char* why) {
  why_ = why;
  a_.socket.close();
  b_.socket.close();
}

bool Splice::flush(Side& side) {
  while (side.sent < side.unsent.size()) {
    const auto written = side.socket.write_some(ByteSpan(side.unsent).subspan(side.sent));
    if (!written.ok()) return false;
    if (*written == 0) return true;
    side.sent += *written;
  }
  if (!side.unsent.empty()) Bytes().swap(side.unsent);  // an idle connection holds no buffer
  side.sent = 0;
  return true;
}

bool Splice::move(Side& from, Side& to, MonotonicTime now) {
  std::array<std::uint8_t, buffer_bytes> buffer;
  const auto count = from.socket.read_some(buffer);
  if (!count.ok()) {
    from.ended = true;
    return count.error().code == ErrorCode::Unavailable;
  }
  if (*count == 0) return true;
  moved_ = now;
  bytes_ += *count;
  const ByteSpan bytes(buffer.data(), *count);
  const auto written = to.socket.write_some(bytes);
  if (!written.ok()) return false;
  const ByteSpan rest = bytes.subspan(*written);
  to.unsent.assign(rest.begin(), rest.end());
  return true;
}

bool Splice::step(Span<const SocketWait> two, MonotonicTime now) {
  if (*why_ != '\0') return false;
  bool well = true;
  if (two[0].write || !a_.unsent.empty()) well = flush(a_) && well;
  if (two[1].write || !b_.unsent.empty()) well = flush(b_) && well;
  if (well && two[0].read && b_.unsent.empty()) well = move(a_, b_, now);
  if (well && two[1].read && a_.unsent.empty()) well = move(b_, a_, now);
  for (Side* side : {&a_, &b_}) {
    Side& other = side == &a_ ? b_ : a_;
    if (side->ended && other.unsent.empty() && !other.told) {
      other.socket.shut_down_writing();
      other.told = true;
    }
  }
  if (!well) {
    end("a connection broke");
  } else if (a_.told && b_.told) {
    end("both sides are done");
  } else if (bytes_ > limits_.bytes) {
    end("it reached its limit of bytes");
  } else if (now - started_ >= limits_.total) {
    end("it reached its limit of time");
  } else if (now - moved_ >= limits_.idle) {
    end("nothing passed for too long");
  }
  return *why_ == '\0';
}

}  // namespace neuroshard::nat
