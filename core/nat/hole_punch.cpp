#include "core/nat/hole_punch.h"

#include <fmt/format.h>

#include <algorithm>

namespace neuroshard::nat {
namespace {

using platform::TcpSocket;

// Between two dials: refusals come at once, and nobody is to be flooded.
constexpr Duration pause = std::chrono::milliseconds(50);

Expected<void> wait_for_time(const Io& io, MonotonicTime until) {
  while (io.now() < until) NS_RETURN_IF_ERROR(wait_until(io, {}, until));
  return {};
}

}  // namespace

Expected<TcpSocket> punch_hole(const Io& io, const PunchPlan& plan) {
  const auto any = plan.remote.ip.is_v4() ? platform::IpAddress::v4(0, 0, 0, 0) : platform::IpAddress{};
  NS_RETURN_IF_ERROR(wait_for_time(io, plan.start));
  int dials = 0;
  while (io.now() < plan.deadline) {
    ++dials;
    auto socket = dial_until(io, plan.remote, {platform::Endpoint{any, plan.local_port}, true},
                             std::min(io.now() + plan.attempt, plan.deadline));
    if (socket.ok()) return socket;
    const ErrorCode code = socket.error().code;
    // Refused, reset, too slow: the other side was not there yet. A taken port stays taken.
    if (code != ErrorCode::Timeout && code != ErrorCode::Unavailable) return socket;
    NS_RETURN_IF_ERROR(wait_for_time(io, std::min(io.now() + pause, plan.deadline)));
  }
  return make_error(
      ErrorCode::Timeout,
      fmt::format("no direct connection to {} after {} dials; at least one of the two NATs gives each "
                  "destination another port",
                  to_text(plan.remote), dials));
}

}  // namespace neuroshard::nat
