// State that the parts of one transport share. It may outlive the transport, because threads of gRPC may
// return late.
#pragma once

#include <atomic>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/net/mailbox.h"
#include "core/rpc/detail/connection_watch.h"
#include "core/rpc/grpc_transport.h"

namespace neuroshard::rpc::detail {

// Remembers the ids of certificates: one parse per connection, not per call.
class KnownCertificates {
 public:
  std::optional<net::NodeId> find(const std::string& pem);
  void remember(const std::string& pem, const net::NodeId& id);

 private:
  static constexpr std::size_t max_known = 1024;
  std::mutex mutex_;
  std::list<std::pair<std::string, net::NodeId>> order_;  // most recent first
  std::unordered_map<std::string_view, decltype(order_)::iterator> entries_;
};

// A call or stream that gRPC keeps alive, as the sweep sees it.
class Sweepable {
 public:
  virtual ~Sweepable() = default;
  // Ends it if nothing has moved for too long.  Threads: the executor's.
  virtual void check(MonotonicTime now) = 0;
  // Ends it because the transport ends.
  virtual void stop() = 0;
};

struct Shared : std::enable_shared_from_this<Shared> {
  Shared(RpcServices all, RpcOptions chosen);

  // Threads: any, all members below.
  // Whether this certificate is accepted; its node's id. Counts the refusal. Denied.
  Expected<net::NodeId> check_certificate(const std::string& pem, const std::optional<net::NodeId>& pin);
  // Like check_certificate without a pin, cheaper for a known certificate; bans are checked each time.
  Expected<net::NodeId> caller_of(const std::string& pem);
  // The hello of a call. Denied, Unsupported.
  Expected<net::Hello> check_hello(const std::string& bytes);
  void count(net::Refusal refusal);
  void fault(const net::Caller& from, net::Fault fault);
  void fault(const platform::IpAddress& from, net::Fault fault);  // of a node that has not proven its id
  // Whether an address may connect, and whether a handshake with it may begin now (net::Conduct).
  bool welcome(const platform::IpAddress& address);
  bool may_greet(const platform::IpAddress& address);
  // Whether the bytes of connections from there pass the shaper. Without a Conduct none do.
  bool is_shaped(const platform::IpAddress& address);
  // The caller of a call, by gRPC's name for it. InvalidArgument; Unavailable: its connection is over.
  Expected<platform::Endpoint> caller_at(const std::string& peer) const;
  // Whether this node is accepted from its address now; counts the refusal. Denied.
  Expected<void> check_address(const net::Caller& caller);
  // A large answer starts to leave; answer_left() ends that, with its bytes on the line, or 0 if it failed.
  // The operating system has the bytes then; they are on the line until drained(), while draining().
  void answer_leaves();
  void answer_left(std::uint64_t bytes);
  bool draining();
  void drained();
  // Called when draining() begins, on any thread, until close().
  void set_drain_begins(std::function<void()> begins);
  MonotonicTime now();
  net::PeerRank rank(const net::NodeId& id);
  std::string own_hello();
  void set_hello(const net::Hello& hello);

  void add(const std::shared_ptr<Sweepable>& sweepable);
  void remove(Sweepable* sweepable);
  std::vector<std::shared_ptr<Sweepable>> all();
  // New calls are refused: set before all() is stopped, checked after add().
  std::atomic<bool> stopping{false};
  // No service is used from now on.
  void close();

  const RpcOptions options;
  const std::shared_ptr<net::Mailbox> mailbox;
  net::PeerService* service = nullptr;  // used on the executor only
  net::NodeId id{};
  ConnectionWatch watch;
  std::unique_ptr<platform::TrafficShaper> shaper;  // set before the first call; null: it does not listen

 private:
  std::mutex services_mutex_;
  std::optional<RpcServices> services_;  // none once closed
  bool draining_ = false;
  std::function<void()> drain_begins_;
  std::mutex hello_mutex_;
  net::Hello hello_;
  std::string hello_bytes_;
  KnownCertificates known_;
  std::mutex sweep_mutex_;
  std::unordered_map<Sweepable*, std::weak_ptr<Sweepable>> sweepables_;
};

}  // namespace neuroshard::rpc::detail
