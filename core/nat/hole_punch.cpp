#include "core/nat/hole_punch.h"

#include <fmt/format.h>

#include <algorithm>

namespace neuroshard::nat {
namespace {

using platform::Endpoint;
using platform::SocketWait;
using platform::TcpListener;
using platform::TcpSocket;

// Between two dials: refusals come at once, and the pause keeps the rate low.
constexpr Duration first_pause = std::chrono::milliseconds(50), longest_pause = std::chrono::seconds(2);

class Punch {
 public:
  Punch(const Io& io, const PunchPlan& plan)
      : io_(io),
        plan_(plan),
        here_{plan.remote.ip.is_v4() ? platform::IpAddress::v4(0, 0, 0, 0) : platform::IpAddress{},
              plan.local_port} {}

  Expected<TcpSocket> run() {
    NS_RETURN_IF_ERROR(wait_and_hear(plan_.start, nullptr));
    // The other side's dial may arrive between two of ours. If the port can't listen, it still dials.
    if (plan_.local_port != 0) {
      auto opened = TcpListener::open(here_, true);
      if (opened.ok()) listener_ = std::move(*opened);
    }
    int dials = 0;
    Duration pause = first_pause;
    while (io_.now() < plan_.deadline) {
      const bool last = ++dials >= plan_.dials;
      NS_ASSIGN_OR_RETURN(const bool stands, dial());
      if (stands) return std::move(socket_);
      // After the last dial, the other side's may still arrive.
      const MonotonicTime until = last ? plan_.deadline : std::min(io_.now() + pause, plan_.deadline);
      NS_RETURN_IF_ERROR(wait_and_hear(until, nullptr));
      if (socket_.is_open()) return std::move(socket_);
      pause = std::min(pause * 8 / 5, longest_pause);
    }
    return make_error(
        ErrorCode::Timeout,
        fmt::format("no direct connection to {} after {} dials; at least one of the two NATs gives each "
                    "destination another port",
                    to_text(plan_.remote), dials));
  }

 private:
  // One dial; true when socket_ is connected, by it or by the other side's dial.
  Expected<bool> dial() {
    auto dialled = TcpSocket::dial(plan_.remote, {here_, true});
    if (!dialled.ok()) return failed(dialled.error());
    const MonotonicTime until = std::min(io_.now() + plan_.attempt, plan_.deadline);
    while (io_.now() < until) {
      NS_RETURN_IF_ERROR(wait_and_hear(until, &*dialled));
      if (socket_.is_open()) return true;
      const auto connected = dialled->connected();
      if (!connected.ok()) return failed(connected.error());
      if (!*connected) continue;
      socket_ = std::move(*dialled);
      return true;
    }
    return false;
  }

  // Refused, reset or too slow: the other side was not ready. A used port stays used, unless the other side's
  // connection uses it.
  Expected<bool> failed(const Error& error) {
    NS_RETURN_IF_ERROR(hear());
    if (socket_.is_open()) return true;
    if (error.code == ErrorCode::Timeout || error.code == ErrorCode::Unavailable) return false;
    return error;
  }

  Expected<void> hear() {
    if (listener_.descriptor() < 0) return {};
    while (!socket_.is_open()) {
      NS_ASSIGN_OR_RETURN(auto accepted, listener_.accept());
      if (!accepted) return {};
      if (accepted->from == plan_.remote) socket_ = std::move(accepted->socket);  // others are closed
    }
    return {};
  }

  // Waits until then, or until the other side has dialled, or `dialled` has an event.
  Expected<void> wait_and_hear(MonotonicTime until, const TcpSocket* dialled) {
    while (!socket_.is_open()) {
      std::array<SocketWait, 2> waits{SocketWait{listener_.descriptor(), true, false, false},
                                      SocketWait{dialled ? dialled->descriptor() : -1, false, true, false}};
      NS_ASSIGN_OR_RETURN(const bool ready, wait_until(io_, waits, until));
      NS_RETURN_IF_ERROR(hear());
      if (!ready || waits[1].write || waits[1].over) return {};
    }
    return {};
  }

  const Io& io_;
  const PunchPlan& plan_;
  const Endpoint here_;
  TcpListener listener_;
  TcpSocket socket_;
};

}  // namespace

Expected<TcpSocket> punch_hole(const Io& io, const PunchPlan& plan) {
  return Punch(io, plan).run();
}

}  // namespace neuroshard::nat
