// Two nodes that can talk, over gRPC on the loopback interface or on the simulated network: what the contract
// test of peer channels runs against.
#pragma once

#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "core/base/log.h"
#include "core/crypto/keys.h"
#include "core/net/ban_list.h"
#include "core/net/limited_transport.h"
#include "core/net/peer_channel.h"
#include "core/net/refusals.h"
#include "core/rpc/grpc_transport.h"
#include "core/sim/transport.h"
#include "tests/support/keys.h"
#include "tests/support/pump_executor.h"

namespace neuroshard::testing {

using neuroshard::test::key_of;

inline net::Hello hello_of_network(std::uint8_t network) {
  net::Hello hello;
  hello.network_id.fill(network);
  hello.features = net::Feature::Dht | net::Feature::Peers;
  hello.program = "test";
  return hello;
}

// Does what a test says.
class Service final : public net::PeerService {
 public:
  std::function<void(const net::Caller&, net::Method, Bytes, net::Respond)> call;
  std::function<void(const net::Caller&, net::Method, std::shared_ptr<net::PeerStream>)> stream;

  void on_call(const net::Caller& from, net::Method method, Bytes request, net::Respond respond) override {
    if (call) return call(from, method, std::move(request), std::move(respond));
    respond(std::move(request));
  }
  void on_stream(const net::Caller& from, net::Method method,
                 std::shared_ptr<net::PeerStream> opened) override {
    if (stream) stream(from, method, std::move(opened));
  }
};

// `a` dials, `b` answers.
class PeerPair {
 public:
  virtual ~PeerPair() = default;
  virtual net::PeerTransport& a() = 0;
  virtual net::PeerTransport& b() = 0;
  virtual void remove_b() = 0;
  virtual net::Dial dial() const = 0;
  virtual net::BanList& bans_of_b() = 0;
  // `b` knows `a`, as a member of its chain. Large messages of strangers take their time.
  virtual void introduce_a() {}
  virtual bool run_until(const std::function<bool()>& condition) = 0;

  Service service;
  crypto::KeyPair key_a = key_of(1), key_b = key_of(2);
  net::NodeId id_a = crypto::node_id(key_a.public_key()), id_b = crypto::node_id(key_b.public_key());
  net::RefusalCounts refusals_a, refusals_b;

  // Null when it fails; the error is kept.
  std::shared_ptr<net::PeerChannel> connect() {
    std::optional<Expected<std::shared_ptr<net::PeerChannel>>> result;
    a().connect(dial(), net::connect_deadline, [&](auto channel) { result.emplace(std::move(channel)); });
    if (!run_until([&] { return result.has_value(); })) return nullptr;
    if (result->ok()) return **result;
    error = result->error();
    return nullptr;
  }
  Error error;
};

class GrpcPair final : public PeerPair {
 public:
  explicit GrpcPair(const rpc::RpcLimits& limits = {}) {
    rpc::RpcOptions options;
    options.limits = limits;
    options.hello = hello_of_network(7);
    a_ = rpc::make_grpc_transport({key_a, executor_, clock_, bans_, refusals_a}, options).value();
    options.listen = platform::Endpoint{platform::IpAddress::v4(127, 0, 0, 1), 0};
    if (limits.message_patience == rpc::RpcLimits().message_patience)
      options.limits.message_patience = options.limits.stream_patience = std::chrono::milliseconds(700);
    b_ = rpc::make_grpc_transport(
             {key_b, executor_, clock_, bans_b, refusals_b, &conduct_b, nullptr, &ranks_of_b}, options)
             .value();
    b_->serve(&service);
  }
  net::PeerTransport& a() override { return *a_; }
  net::PeerTransport& b() override { return *b_; }
  rpc::GrpcTransport& answering() { return *b_; }
  void remove_b() override { b_.reset(); }
  net::Dial dial() const override { return {b_->endpoint(), id_b}; }
  net::BanList& bans_of_b() override { return bans_b; }
  void introduce_a() override { ranks_of_b.set_members({{id_a, net::PeerRank::Known}}); }
  bool run_until(const std::function<bool()>& condition) override { return executor_.run_until(condition); }

  SystemClock clock_;
  net::BanList bans_{clock_}, bans_b{clock_};
  net::PeerRanks ranks_of_b;
  // Counts the loopback address of these tests, too, as if it were of the internet.
  static net::ConductRules rules() {
    net::ConductRules rules;
    rules.internet_only = false;
    return rules;
  }
  net::Conduct conduct_b{bans_b, clock_, false, rules(), &ranks_of_b};
  PumpExecutor executor_;

 private:
  std::unique_ptr<rpc::GrpcTransport> a_, b_;
};

class SimPair : public PeerPair {
 public:
  SimPair() {
    const sim::TransportServices services{world_, network_, population_, bans_, refusals_a};
    const sim::TransportServices services_b{world_, network_, population_, bans_b, refusals_b};
    a_ = std::make_unique<sim::SimTransport>(services, executor_a_, id_a, endpoint(1), sim::Nat::Cone,
                                             hello_of_network(7));
    b_ = std::make_unique<sim::SimTransport>(services_b, executor_b_, id_b, endpoint(2), sim::Nat::None,
                                             hello_of_network(7));
    b_->serve(&service);
  }
  net::PeerTransport& a() override { return *a_; }
  net::PeerTransport& b() override { return *b_; }
  void remove_b() override { b_.reset(); }
  net::Dial dial() const override { return {endpoint(2), id_b}; }
  net::BanList& bans_of_b() override { return bans_b; }
  bool run_until(const std::function<bool()>& condition) override {
    return world_.run_until(condition, world_.now() + std::chrono::hours(1));
  }

  sim::World world_;
  net::BanList bans_{world_.clock()}, bans_b{world_.clock()};

 private:
  static platform::Endpoint endpoint(std::uint8_t number) {
    return {platform::IpAddress::v4(11, 0, 0, number), 9000};
  }

 protected:
  sim::Network network_{world_, {}, 1};
  sim::Population population_;
  sim::HostExecutor executor_a_{world_}, executor_b_{world_};
  std::unique_ptr<sim::SimTransport> a_, b_;
};

// The same world with the user's limits on both ends, so wide that nothing waits long.
class LimitedPair final : public SimPair {
 public:
  LimitedPair() { b_->serve(&limited_b_.serving(&service)); }
  net::PeerTransport& a() override { return limited_a_; }
  net::PeerTransport& b() override { return limited_b_; }

 private:
  static constexpr std::uint64_t wide = 1u << 30;
  NullLogger logger_;
  net::TrafficMeter meter_a_{world_.clock(), logger_, {wide, wide}, nullptr};
  net::TrafficMeter meter_b_{world_.clock(), logger_, {wide, wide}, nullptr};
  net::LimitedTransport limited_a_{*a_, executor_a_, meter_a_};
  net::LimitedTransport limited_b_{*b_, executor_b_, meter_b_};
};

}  // namespace neuroshard::testing
