// Decides which addresses may dial a node's place at a TURN server. A node that nobody can dial itself calls
// LetIn through a relay and names the address at which others see it; that address is then permitted. A
// caller can't prove its address through a relay, so a wrong one gains nothing: a connection from there must
// still show its own key. Each request costs a question to the TURN server and one of its permissions, so
// there are few for each node and in all.
#pragma once

#include <functional>

#include "core/base/clock.h"
#include "core/net/method_table.h"
#include "core/net/request_limiter.h"
#include "core/net/token_bucket.h"

namespace neuroshard::swarm {

class TurnIngress {
 public:
  // Behind a relay all callers have its address: only their ids are counted.
  static constexpr net::RequestLimits of_one{0.1, 3, 1024, 4};
  static constexpr double all_per_second = 2, all_burst = 16;
  // nat::Tunnels::let_in.
  using LetIn = std::function<void(const platform::IpAddress& peer, std::function<void(Expected<void>)>)>;

  // one_lan: private addresses count. clock outlives it.  Threads: one.
  TurnIngress(const Clock& clock, bool one_lan, std::uint64_t seed, LetIn let_in);

  // has_place: whether the node has a place now. Errors for the caller: Corrupt (a fault) · Unsupported (no
  // place) · Denied (the address is not public, or the TURN server's rules forbid it) · Exhausted (too many
  // requests; those of one caller are a fault) · Unavailable (the TURN server does not answer).
  void answer(const net::Caller& from, ByteSpan request, bool has_place, const net::Reply& reply);

 private:
  const Clock& clock_;
  const bool one_lan_;
  const LetIn let_in_;
  net::RequestLimiter each_;
  net::TokenBucket all_;
};

}  // namespace neuroshard::swarm
