// A node that relays, on the loopback interface: its listener hands connections on, as the one for peers
// does. Header only; no Qt.
#pragma once

#include <atomic>
#include <memory>
#include <thread>

#include "core/nat/relay_role.h"

namespace neuroshard::testing {

class LoopbackRelay {
 public:
  LoopbackRelay() : role(nat::RelayRole::start({}, clock_, entropy_).value()) {
    const platform::IpAddress loopback = platform::IpAddress::v4(127, 0, 0, 1);
    listener_ = platform::TcpListener::open({loopback, 0}).value();
    endpoint = listener_.local().value();
    thread_ = std::thread([this] {
      while (!stop_) {
        platform::SocketWait wait{listener_.descriptor(), true, false, false};
        (void)platform::wait_for(Span<platform::SocketWait>(&wait, 1), std::chrono::milliseconds(20));
        auto accepted = listener_.accept();
        if (accepted.ok() && accepted->has_value()) role->take((*accepted)->socket.release());
      }
    });
  }
  ~LoopbackRelay() {
    stop_ = true;
    thread_.join();
  }

 private:
  SystemClock clock_;
  crypto::SystemEntropy entropy_;

 public:
  std::unique_ptr<nat::RelayRole> role;
  platform::Endpoint endpoint;

 private:
  platform::TcpListener listener_;
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

}  // namespace neuroshard::testing
