#include "core/nat/loopback_pump.h"

#include <algorithm>

namespace neuroshard::nat {
namespace {

using platform::Endpoint;
using platform::SocketWait;
using platform::TcpListener;
using platform::TcpSocket;

const platform::IpAddress loopback = platform::IpAddress::v4(127, 0, 0, 1);

}  // namespace

Expected<void> LoopbackPump::has_room() const {
  if (connections() < limits_.connections) return {};
  return make_error(ErrorCode::Exhausted, "too many relayed and punched connections are open");
}

Expected<Endpoint> LoopbackPump::inbound(TcpSocket peer, std::uint16_t port) {
  return inbound(std::move(peer), Endpoint{loopback, port});
}

Expected<Endpoint> LoopbackPump::inbound(TcpSocket peer, const Endpoint& own) {
  NS_RETURN_IF_ERROR(has_room());
  NS_ASSIGN_OR_RETURN(TcpSocket dialled, TcpSocket::dial(own));
  NS_ASSIGN_OR_RETURN(const Endpoint from, dialled.local());
  waiting_.push_back({std::move(peer), std::move(dialled), {}, clock_.monotonic_now() + limits_.dial});
  return from;
}

Expected<std::uint16_t> LoopbackPump::outbound(TcpSocket peer) {
  NS_RETURN_IF_ERROR(has_room());
  NS_ASSIGN_OR_RETURN(TcpListener listening, TcpListener::open({loopback, 0}));
  NS_ASSIGN_OR_RETURN(const Endpoint local, listening.local());
  waiting_.push_back({std::move(peer), {}, std::move(listening), clock_.monotonic_now() + limits_.dial});
  return local.port;
}

bool LoopbackPump::advance(Waiting& waiting, const SocketWait& wait, MonotonicTime now) {
  if (wait.write) {
    const auto connected = waiting.dialled.connected();
    if (!connected.ok()) return true;
    if (*connected) {
      splices_.emplace_back(std::move(waiting.peer), std::move(waiting.dialled), limits_.each, now);
      return true;
    }
  } else if (wait.read) {
    auto accepted = waiting.listening.accept();
    if (!accepted.ok()) return true;
    if (accepted->has_value()) {
      splices_.emplace_back(std::move(waiting.peer), std::move((*accepted)->socket), limits_.each, now);
      return true;
    }
  }
  return now >= waiting.deadline;
}

Expected<void> LoopbackPump::step(Duration limit, int wake) {
  const MonotonicTime before = clock_.monotonic_now();
  MonotonicTime until = before + limit;
  std::vector<SocketWait> waits;
  for (const Waiting& waiting : waiting_) {
    const bool dials = waiting.dialled.is_open();
    waits.push_back(
        {dials ? waiting.dialled.descriptor() : waiting.listening.descriptor(), !dials, dials, false});
    until = std::min(until, waiting.deadline);
  }
  for (const Splice& splice : splices_) {
    splice.append_waits(waits);
    until = std::min(until, splice.next());
  }
  waits.push_back({wake, true, false, false});
  NS_RETURN_IF_ERROR(platform::wait_for(waits, until - before));
  waits.pop_back();
  const MonotonicTime now = clock_.monotonic_now();
  const Span<const SocketWait> ready(waits);
  std::size_t at = waiting_.size();
  std::vector<Splice> kept;
  for (Splice& splice : splices_) {
    const std::uint64_t passed = splice.bytes();
    const bool goes_on = splice.step(ready.subspan(at, 2), now);
    bytes_ += splice.bytes() - passed;
    if (goes_on) kept.push_back(std::move(splice));
    at += 2;
  }
  splices_ = std::move(kept);
  std::vector<Waiting> still;
  for (std::size_t i = 0; i < waiting_.size(); ++i)
    if (!advance(waiting_[i], ready[i], now)) still.push_back(std::move(waiting_[i]));
  waiting_ = std::move(still);
  return {};
}

}  // namespace neuroshard::nat
