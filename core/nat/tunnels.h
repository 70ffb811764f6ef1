// Connections that can't be dialled plainly: calls through relays, in both directions, joined with gRPC by
// the loopback pump. Threads of its own, made when first needed: one moves bytes, one keeps the place at a
// relay, a few dial. Its owner speaks with it from one executor and hears from it there.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>

#include "core/base/executor.h"
#include "core/nat/loopback_pump.h"
#include "core/nat/relay_hold.h"
#include "core/platform/wake.h"

namespace neuroshard::nat {

struct TunnelOptions {
  platform::Endpoint own;  // where this node listens for peers
  PumpLimits pump;
  RelayHoldTimes hold;
  std::size_t dialling = 4;  // at the same time
  std::size_t waiting = 32;  // for a turn
};

class Tunnels {
 public:
  // The port on 127.0.0.1 that leads to the node, for one connection, within PumpLimits::dial.
  using Dialled = std::function<void(Expected<std::uint16_t>)>;
  using Ticket = std::function<void(Expected<RelayTicket>)>;
  struct Events {
    // Ask this relay for a reservation, over mutual TLS; answer by `ticket`, once.
    std::function<void(const platform::Endpoint& relay, Ticket ticket)> reserve;
    // Where this node can be called from now on; nothing: nowhere, and why.
    std::function<void(std::optional<platform::Endpoint> relay, std::string trouble)> held;
  };

  // References must outlive it. Events and answers come on `executor`.  Exhausted: no descriptors are left.
  static Expected<std::unique_ptr<Tunnels>> start(const Clock& clock, crypto::Entropy& entropy,
                                                  Executor& executor, TunnelOptions options);
  ~Tunnels();  // waits for what is under way, which ends at once; all connections through it end

  // Threads: the executor's, all members below.
  void set_events(Events events);
  // Calls the node through the relay. Exhausted: too many wait for a turn; else what call_through_relay says.
  void dial(const platform::Endpoint& relay, const Hash256& callee, Duration limit, Dialled done);
  // Keeps a place at one of these relays, the first that has one; empty: at none.
  void hold(std::vector<platform::Endpoint> relays);

 private:
  struct Dial {
    platform::Endpoint relay;
    Hash256 callee;
    MonotonicTime deadline;
    Dialled done;
  };

  Tunnels(const Clock& clock, crypto::Entropy& entropy, Executor& executor, TunnelOptions options,
          platform::Wake wake);
  void tell(Executor::Task task);
  void pump();
  void on_pump(std::function<void(LoopbackPump&)> task);
  void dial_in_turn();
  void keep_place();
  Expected<RelayTicket> reserve(const platform::Endpoint& relay);

  const Clock& clock_;
  Executor& executor_;
  const TunnelOptions options_;
  CancelSource cancel_;
  const Io io_;
  const platform::Wake wake_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool stop_ = false;
  std::deque<std::function<void(LoopbackPump&)>> pump_tasks_;
  std::deque<Dial> dials_;
  std::size_t idle_ = 0;  // threads that wait for a dial
  std::vector<platform::Endpoint> relays_;
  std::shared_ptr<Events> events_;  // the executor's
  std::unique_ptr<Executor> pump_thread_, hold_thread_;
  std::vector<std::unique_ptr<Executor>> dial_threads_;
};

}  // namespace neuroshard::nat
