// A node in the role of a relay: the relay server (relay_server.h) on a thread of its own, fed with the
// connections that the node's listener takes at the port for peers. While nobody calls, the thread sleeps.
#pragma once

#include <atomic>

#include "core/base/executor.h"
#include "core/nat/relay_server.h"
#include "core/platform/socket/wake.h"

namespace neuroshard::nat {

// With what a connection to a relay begins: CONNECT, JOIN, ACCEPT, or a STUN request.
inline const std::string relay_begins{'C', 'J', 'A', '\0'};

class RelayRole {
 public:
  // References must outlive it. Exhausted: no descriptors are left.
  static Expected<std::unique_ptr<RelayRole>> start(const RelayLimits& limits, const Clock& clock,
                                                    crypto::Entropy& entropy);
  ~RelayRole();  // all that runs through it ends

  // A connection that began with one of relay_begins; the descriptor is this object's from now on.
  // Threads: any, like all members.
  void take(int descriptor);
  void set_pace(RelayPace pace) { server_->set_pace(std::move(pace)); }
  // As RelayServer::reserve.
  Expected<RelayTicket> reserve(const Hash256& callee, const platform::IpAddress& from);
  RelayCounters counters() const { return server_->counters(); }
  std::size_t joined() const { return server_->joined(); }

 private:
  RelayRole(std::unique_ptr<RelayServer> server, platform::Wake wake);
  void work();

  std::unique_ptr<RelayServer> server_;
  platform::Wake wake_;
  std::atomic<bool> stop_{false};
  std::unique_ptr<Executor> thread_;
};

}  // namespace neuroshard::nat
