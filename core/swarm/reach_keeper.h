// Whether others can dial this node, and where: what is seen from outside, what the router opened, and what a
// dial-back proved, kept true while addresses and routers change. Only what was dialled is advertised. It
// sends nothing itself: its owner asks somebody to dial back and says what came of it.
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
  // Has somebody outside dial this node at this port of the address that it is seen at.
  using Ask = std::function<void(std::uint16_t port, DialledBack done)>;
  struct Events {
    std::function<void()> changed;  // what is to be advertised is something else now
    // The world sees this node at another address than before: the router is to be asked.
    std::function<void(const platform::IpAddress& seen_at)> seen;
  };

  // port: where this node listens; 0: it does not.  Threads: one.
  ReachKeeper(std::uint16_t port, const Clock& clock, Events events);

  ~ReachKeeper() { lifetime_.end(); }

  // Somebody outside sees this node there.
  void seen(const platform::Endpoint& at);
  // What the router says; a change of what it opened is to be verified (due()).
  void router_says(nat::RouterNews news);
  // Tries all ways, the mapped one first; `done` when it is known. At once when a try is under way already.
  void verify(const Ask& ask, const std::function<void()>& done);
  // Somebody is to be asked to dial back: nothing is known, something changed, or it is long ago.
  bool due() const;
  bool trying() const { return trying_; }
  void test_again() { due_ = true; }

  // What is verified now.
  std::optional<platform::Endpoint> advertised() const { return advertised_; }
  std::optional<platform::Endpoint> seen_at() const { return seen_at_; }
  bool tested() const { return tested_; }
  // Why it is not reached, in words.
  const std::string& why_not() const { return why_not_; }
  // In plain words for a person; pure. nat: what STUN over TCP showed, if it was asked.
  nat::ReachabilityVerdict verdict(const nat::MappingFinding& nat = {}) const;
  std::optional<WallTime> tested_at() const { return tested_at_; }

 private:
  struct Way {
    std::uint16_t port;
    bool mapped;
  };
  std::optional<platform::Endpoint> mapping() const;  // that counts: at the address that we are seen at
  void try_ways(const Ask& ask, std::vector<Way> ways, std::function<void()> done);
  void finish(std::optional<platform::Endpoint> reached, bool certain);

  const std::uint16_t port_;
  const Clock& clock_;
  const Events events_;
  nat::RouterNews router_;
  std::optional<platform::Endpoint> seen_at_, advertised_;
  nat::Dialled direct_ = nat::Dialled::NotTried, mapped_ = nat::Dialled::NotTried;
  bool trying_ = false, tested_ = false, due_ = true;
  std::uint64_t round_ = 0;  // a try that an address change overtook counts no more
  int misses_ = 0;           // in a row, of what was reached before
  MonotonicTime next_{};
  std::optional<WallTime> tested_at_;
  std::string why_not_ = "not tried yet";
  Lifetime lifetime_;
};

}  // namespace neuroshard::swarm
