// A node in the role of a relay: the relay server (relay_server.h) on a thread of its own. It gets the
// connections that the node's listener accepts at the port for peers. The thread sleeps when there are none.
#pragma once

#include <atomic>

#include "core/base/executor.h"
#include "core/nat/relay_server.h"
#include "core/platform/socket/wake.h"

namespace neuroshard::nat {

// The first bytes of a connection to a relay: CONNECT, JOIN, ACCEPT, or a STUN request.
inline const std::string relay_begins{'C', 'J', 'A', '\0'};

class RelayRole {
 public:
  // References must outlive it. Exhausted: no descriptors are left.
  static Expected<std::unique_ptr<RelayRole>> start(const RelayLimits& limits, const Clock& clock,
                                                    crypto::Entropy& entropy);
  ~RelayRole();  // ends all relayed connections

  // A connection that began with one of relay_begins. Takes ownership of the descriptor.
  // Threads: any, like all members.
  void take(int descriptor);
  void set_pace(RelayPace pace) { server_->set_pace(std::move(pace)); }
  // Like RelayServer::reserve.
  Expected<RelayTicket> reserve(const Hash256& callee, const platform::IpAddress& from);
  RelayCounters counters() const { return server_->counters(); }
  std::size_t joined() const { return server_->joined(); }
  bool used_up() const { return server_->used_up(); }

 private:
  RelayRole(std::unique_ptr<RelayServer> server, platform::Wake wake);
  void work();

  std::unique_ptr<RelayServer> server_;
  platform::Wake wake_;
  std::atomic<bool> stop_{false};
  std::unique_ptr<Executor> thread_;
};

}  // namespace neuroshard::nat
