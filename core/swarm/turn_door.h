// Who is let in at a node's place at a TURN server (NETWORK.md, reachability). Nodes that can't be dialled
// themselves come through a relay and say by LetIn where the world sees them; from that address they may then
// dial the place. Nobody can prove which address is his through a relay, so a wrong one is worth nothing: the
// connection from there has to show its own key. Each request costs a question to the TURN server and one of
// the places there, so they are few for each node and in all.
#pragma once

#include <functional>

#include "core/base/clock.h"
#include "core/net/conduct.h"
#include "core/net/request_limiter.h"
#include "core/net/token_bucket.h"

namespace neuroshard::swarm {

class TurnDoor {
 public:
  // Behind a relay all callers have its address: only their ids are counted.
  static constexpr net::RequestLimits of_one{0.1, 3, 1024, 4};
  static constexpr double all_per_second = 2, all_burst = 16;
  // nat::Tunnels::let_in.
  using LetIn = std::function<void(const platform::IpAddress& peer, std::function<void(Expected<void>)>)>;

  // one_lan: private addresses count. conduct: told of what no honest program sends; may be null. All outlive
  // it.  Threads: one.
  TurnDoor(const Clock& clock, bool one_lan, net::Conduct* conduct, LetIn let_in);

  // has_place: whether there is one now. Errors, as the caller hears them: Corrupt · Unsupported (no place) ·
  // Denied (the address is none of the internet, or the TURN server's rules forbid it) · Exhausted (asked too
  // often) · Unavailable (the TURN server does not answer).
  void answer(const net::Caller& from, ByteSpan request, bool has_place, const net::Respond& respond);

 private:
  const Clock& clock_;
  const bool one_lan_;
  net::Conduct* const conduct_;
  const LetIn let_in_;
  net::RequestLimiter each_;
  net::TokenBucket all_;
};

}  // namespace neuroshard::swarm
