// A splice relay on the loopback interface, and a node behind it that sends back what it receives.
#pragma once

#include <QtTest>
#include <array>
#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "core/nat/relay_client.h"
#include "core/nat/relay_server.h"

namespace neuroshard::testing {

inline const platform::IpAddress loopback = platform::IpAddress::v4(127, 0, 0, 1);
inline constexpr Duration generous = std::chrono::seconds(20);

// A relay on a thread of its own.
class Relay {
 public:
  explicit Relay(const nat::RelayLimits& limits = {}) {
    server_ = std::move(*nat::RelayServer::open({loopback, 0}, limits, clock_, entropy_));
    endpoint = server_->local().value();
    ticket = server_->reserve(callee, loopback).value();
  }
  ~Relay() { pause(); }
  // From here on the server belongs to its thread, until pause().
  void run() {
    stop_ = false;
    thread_ = std::thread([this] {
      while (!stop_) (void)server_->step(std::chrono::milliseconds(20));
    });
  }
  nat::RelayServer& pause() {
    stop_ = true;
    if (thread_.joinable()) thread_.join();
    return *server_;
  }
  nat::RelayServer& idle_server() { return *server_; }

  Hash256 callee{1, 2, 3};
  nat::RelayTicket ticket{};
  platform::Endpoint endpoint;

 private:
  SystemClock clock_;
  crypto::SystemEntropy entropy_;
  std::unique_ptr<nat::RelayServer> server_;
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

// Answers each call with the bytes that it receives, until its destruction.
class Echo {
 public:
  Echo(const Relay& relay) : io_{clock_, entropy_, source_.token()} {  // NOLINT
    auto joined = nat::RelayCallee::join(io_, relay.endpoint, relay.ticket, io_.now() + generous);
    QVERIFY2(joined.ok(), joined.ok() ? "" : joined.error().message.c_str());
    thread_ = std::thread(
        [this, callee = std::make_shared<nat::RelayCallee>(std::move(*joined))] { serve(*callee); });
  }
  ~Echo() {
    source_.cancel();
    if (thread_.joinable()) thread_.join();
  }

 private:
  void serve(nat::RelayCallee& callee) {
    std::vector<std::thread> calls;
    while (!io_.cancel.cancelled()) {
      auto call = callee.next(io_, io_.now() + std::chrono::milliseconds(100));
      if (!call.ok()) break;
      if (call->has_value())
        calls.emplace_back([this, socket = std::make_shared<platform::TcpSocket>(
                                      std::move((*call)->socket))] { echo(*socket); });
    }
    for (std::thread& thread : calls) thread.join();
  }
  void echo(platform::TcpSocket& socket) {
    std::array<std::uint8_t, 8192> buffer{};
    while (true) {
      const auto count = nat::read_until(io_, socket, buffer, io_.now() + generous);
      if (!count.ok()) break;
      if (!nat::write_until(io_, socket, ByteSpan(buffer.data(), *count), io_.now() + generous).ok()) break;
    }
    socket.shut_down_writing();
  }
  SystemClock clock_;
  crypto::SystemEntropy entropy_;
  CancelSource source_;
  nat::Io io_;
  std::thread thread_;
};

}  // namespace neuroshard::testing
