// Connections with nodes that can't be dialled directly: through relays, from a TURN server, and punched
// ones, in both directions. The loopback pump joins them with gRPC. It has threads of its own, started when
// first needed: one moves bytes, one keeps the place at a relay, one that at a TURN server, a few dial, a few
// punch. Its owner calls it from one executor and gets its events there.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>

#include "core/base/executor.h"
#include "core/nat/loopback_pump.h"
#include "core/nat/relay_hold.h"
#include "core/nat/stun_client.h"
#include "core/nat/turn_hold.h"
#include "core/platform/socket/wake.h"

namespace neuroshard::nat {

struct TunnelOptions {
  platform::Endpoint own;  // where this node listens for peers
  PumpLimits pump;
  RelayHoldTimes hold;
  std::optional<TurnAccount> turn;  // at the user's own TURN server, if there is one
  TurnHoldTimes turn_times;
  bool one_lan = false;      // private addresses count, too
  std::size_t dialling = 4;  // through relays, at the same time
  std::size_t punching = 4;  // at the same time, including probes of NATs
  std::size_t waiting = 32;  // tasks that wait, of each kind
};

// A fresh port of this machine and its outside endpoint, for as long as the object exists.
using Hole = std::shared_ptr<OutsideTcp>;

class Tunnels {
 public:
  // The port on 127.0.0.1 that leads to the node, for one connection within PumpLimits::dial.
  using Dialled = std::function<void(Expected<std::uint16_t>)>;
  using NatProbed = std::function<void(Expected<MappingFinding>)>;
  using HoleOpened = std::function<void(Expected<Hole>)>;
  using Joined = std::function<void(Expected<void>)>;
  using Ticket = std::function<void(Expected<RelayTicket>)>;
  using Found = std::function<void(Expected<platform::Endpoint>)>;
  struct Events {
    // Ask this relay for a reservation, over mutual TLS; answer by `ticket`, once.
    std::function<void(const platform::Endpoint& relay, Ticket ticket)> reserve;
    // The relay through which others call this node from now on; nothing: none, and why.
    std::function<void(std::optional<platform::Endpoint> relay, std::string trouble)> held;
    // Look up the TURN server's address; answer by `found`, once.
    std::function<void(Found found)> find_turn;
    // Where others dial this node through the TURN server from now on; nothing: nowhere, and why.
    std::function<void(std::optional<platform::Endpoint> at, std::string trouble)> turned;
  };

  // References must outlive it. Events and answers come on `executor`.  Exhausted: no descriptors are left.
  static Expected<std::unique_ptr<Tunnels>> start(const Clock& clock, crypto::Entropy& entropy,
                                                  Executor& executor, TunnelOptions options);
  ~Tunnels();  // cancels running tasks and waits for them; all connections through it end

  // Threads: the executor's, all members below.
  void set_events(Events events);
  // Calls the node through the relay. Exhausted: too many calls wait; else the errors of call_through_relay.
  void dial(const platform::Endpoint& relay, const Hash256& callee, Duration limit, Dialled done);
  // Finds the kind of NAT, by find_mapping_tcp from a fresh port, with this limit for each server.
  void probe_nat(std::vector<platform::Endpoint> stun_servers, Duration limit_per_server, NatProbed done);
  // Opens a hole by the first of these servers that answers in time.
  void open_hole(std::vector<platform::Endpoint> stun_servers, Duration limit_per_server, HoleOpened done);
  // Punches from the hole to the other side's outside endpoint (hole_punch.h). This node calls: like dial().
  void punch(Hole hole, const platform::Endpoint& remote, Duration limit, Dialled done);
  // The other side calls: joined with this node's own port.
  void punch_inbound(Hole hole, const platform::Endpoint& remote, Duration limit, Joined done);
  // Keeps a place at one of these relays, the first with a free one; empty: at none.
  void hold(std::vector<platform::Endpoint> relays);
  // Keeps a place at the TURN server (TunnelOptions::turn), where these addresses may dial; or gives the
  // place back.
  void hold_turn(bool wanted, std::vector<platform::IpAddress> known);
  // The address from which a relayed caller came, as the relay reports it. at: where this node's own port sees
  // that caller.
  std::optional<platform::IpAddress> relayed_caller(const platform::Endpoint& at) const;
  // Permits this address there, too; like TurnHold::let_in. Exhausted: too many requests wait.
  void let_in(const platform::IpAddress& peer, Joined done);

 private:
  // Tasks that wait for a thread, and the threads that run them, started when first needed.
  struct Lane {
    const char* name;
    std::size_t most;
    std::deque<Executor::Task> tasks;
    std::size_t idle = 0;
    std::vector<std::unique_ptr<Executor>> threads;
  };

  Tunnels(const Clock& clock, crypto::Entropy& entropy, Executor& executor, TunnelOptions options,
          platform::Wake wake);
  void tell(Executor::Task task);
  void pump();
  void on_pump(std::function<void(LoopbackPump&)> task);
  // False: too many tasks wait.
  bool in_turn(Lane& lane, Executor::Task task);
  void work(Lane& lane);
  // Runs `use` on the pump's thread.
  void join(platform::TcpSocket socket, std::function<void(LoopbackPump&, platform::TcpSocket)> use);
  void lead_to(Expected<platform::TcpSocket> socket, const Dialled& done);
  Expected<platform::TcpSocket> punch_now(const OutsideTcp& hole, const platform::Endpoint& remote,
                                          Duration limit);
  // Has the owner answer, on its executor, and waits for it.
  template <class Answer>
  Expected<Answer> ask_owner(std::function<void(Events&, std::function<void(Expected<Answer>)>)> question,
                             const char* in_vain);
  void keep_place();
  void remember_caller(const platform::Endpoint& at, const platform::IpAddress& caller);
  Expected<RelayTicket> reserve(const platform::Endpoint& relay);
  void keep_turn();
  Expected<platform::Endpoint> find_turn();
  void answer_asking(TurnHold& hold);

  const Clock& clock_;
  Executor& executor_;
  const TunnelOptions options_;
  CancelSource cancel_;
  const Io io_;
  const platform::Wake wake_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool stop_ = false;
  std::deque<std::function<void(LoopbackPump&)>> pump_tasks_;
  std::vector<platform::Endpoint> relays_;
  struct Asking {
    platform::IpAddress peer;
    Joined done;
  };
  std::deque<std::pair<platform::Endpoint, platform::IpAddress>> relayed_callers_;  // the last ones
  bool turn_wanted_ = false;
  std::vector<platform::IpAddress> turn_known_;
  std::deque<Asking> turn_asking_;
  std::shared_ptr<Events> events_;  // used on the executor only
  std::unique_ptr<Executor> pump_thread_, hold_thread_, turn_thread_;
  Lane dials_, punches_;
};

}  // namespace neuroshard::nat
