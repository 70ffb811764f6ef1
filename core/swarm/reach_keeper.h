// Whether others can dial this node, and where: from the address that others see, the router's mapping and
// the dial-backs, kept current while addresses and routers change. Only a dialled endpoint is advertised. It
// sends nothing: its owner asks another node to dial back and reports the result.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "core/base/lifetime.h"
#include "core/nat/reachability.h"
#include "core/nat/router_port.h"
#include "core/swarm/messages.h"

namespace neuroshard::swarm {

class ReachKeeper {
 public:
  using DialledBack = std::function<void(const Expected<DialBackAnswer>&)>;
  // Has another node dial this node at this port of the address at which it is seen.
  using Ask = std::function<void(std::uint16_t port, DialledBack done)>;
  struct Events {
    std::function<void()> changed;  // advertised() has changed
    // Others see this node at another address than before: the router should be asked.
    std::function<void(const platform::IpAddress& seen_at)> seen;
  };

  // port: where this node listens; 0: it does not.  Threads: one.
  ReachKeeper(std::uint16_t port, const Clock& clock, Events events);

  ~ReachKeeper() { lifetime_.end(); }

  // Another node sees this one at this address.
  void seen(const platform::Endpoint& at);
  // The router's report; a changed mapping must be verified (due()).
  void router_says(nat::RouterNews news);
  // Tries all ports, the mapped one first; `done` when the result is known, or at once if a try is under way.
  void verify(const Ask& ask, const std::function<void()>& done);
  // A dial-back is due: nothing is known, something changed, or the last one was long ago.
  bool due() const;
  bool trying() const { return trying_; }
  void test_again() { due_ = true; }

  // The verified endpoint.
  std::optional<platform::Endpoint> advertised() const { return advertised_; }
  std::optional<platform::Endpoint> seen_at() const { return seen_at_; }
  bool tested() const { return tested_; }
  // Why no node reaches it, for users.
  const std::string& why_not() const { return why_not_; }
  // An explanation for users; pure. nat: the finding of STUN over TCP, if it was asked.
  nat::ReachabilityVerdict verdict(const nat::MappingFinding& nat = {}) const;
  std::optional<WallTime> tested_at() const { return tested_at_; }

 private:
  struct Way {
    std::uint16_t port;
    bool mapped;
  };
  std::optional<platform::Endpoint> mapping() const;  // at the address at which others see this node
  void try_ways(const Ask& ask, std::vector<Way> ways, std::function<void()> done);
  void finish(std::optional<platform::Endpoint> reached, bool certain);

  const std::uint16_t port_;
  const Clock& clock_;
  const Events events_;
  nat::RouterNews router_;
  std::optional<platform::Endpoint> seen_at_, advertised_;
  nat::Dialled direct_ = nat::Dialled::NotTried, mapped_ = nat::Dialled::NotTried;
  bool trying_ = false, tested_ = false, due_ = true;
  std::uint64_t round_ = 0;  // discards the tries of an earlier address
  int misses_ = 0;           // in a row, of the advertised endpoint
  MonotonicTime next_{};
  std::optional<WallTime> tested_at_;
  std::string why_not_ = "not tried yet";
  Lifetime lifetime_;
};

}  // namespace neuroshard::swarm
