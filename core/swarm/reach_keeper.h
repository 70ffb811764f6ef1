// Whether others can dial this node, and where: from the address that others see, the router's mapping and
// the dial-backs, kept current while addresses and routers change. Only a dialled endpoint is advertised. It
// sends nothing: its owner asks other nodes to dial back and reports the results. Observers are the nodes that
// this one is connected to, by address group, so that several ids of one network count once. The majority of
// them decides on the address and on whether this node is reached there.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
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

  // The address group of another node (platform::prefix_group).
  using Observer = std::uint64_t;
  // An observer sees this node at this address.
  void seen(Observer observer, const platform::Endpoint& at);
  // The observer is not connected any more: what it said counts no longer against what others say.
  void gone(Observer observer);
  // The router's report; a changed mapping must be verified (due()).
  void router_says(nat::RouterNews news);
  // Has the observer try all ports, the mapped one first; `done` when the result is known, or at once if a try
  // is under way or the observer sees this node elsewhere.
  void verify(Observer observer, const Ask& ask, const std::function<void()>& done);
  // A dial-back by this observer is due: nothing is known, something changed, few others have tried, or the
  // last try was long ago.
  bool due(Observer observer) const;
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
  void choose_address();
  void forget_tries();
  void try_ways(Observer observer, const Ask& ask, std::vector<Way> ways, std::function<void()> done);
  void finish(Observer observer, std::optional<platform::Endpoint> reached, bool certain);
  std::optional<platform::Endpoint> reached_by_most() const;
  nat::Dialled dialled(const Way& way) const;

  const std::uint16_t port_;
  const Clock& clock_;
  const Events events_;
  nat::RouterNews router_;
  std::map<Observer, platform::Endpoint> seen_by_;  // of the connected ones
  std::set<Observer> asked_;                        // of them, for a dial-back to this address
  std::map<Observer, std::optional<platform::Endpoint>> tried_by_;  // of them, where each reached this node
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
