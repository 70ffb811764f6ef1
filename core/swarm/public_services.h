// Answers the methods that any node serves for others: ping, the address at which it sees them, whether it
// can dial them, peers, a place at the relay, and the tracker's methods. One limit on calls holds for all of
// them together (public_call_limits); dial-backs have a stricter one of their own.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "core/base/lifetime.h"
#include "core/nat/relay_role.h"
#include "core/net/method_table.h"
#include "core/net/node_book.h"
#include "core/net/peer_channel.h"
#include "core/net/request_limiter.h"
#include "core/swarm/tracker.h"

namespace neuroshard::swarm {

// Of one caller, for all public methods together; Punch and LetIn (reachability.h) count, too.
inline constexpr net::RequestLimits public_call_limits{
    .per_second = 10, .burst = 50, .group_factor = 8, .bytes_per_second = 64u << 10, .bytes_burst = 1u << 20};
inline constexpr std::size_t max_public_request = 8u << 10;  // a node record is the largest

struct PublicServices {  // all outlive the answers
  net::PeerTransport& transport;
  const Clock& clock;
  net::NodeBook& book;
  Tracker* tracker = nullptr;            // null: not in this role
  const net::NodeRecord* own = nullptr;  // this node's, once it is signed (sequence > 0)
  nat::RelayRole* relay = nullptr;       // null: not in this role
  // A caller that asks for peers may give its own record; null: nobody needs it.
  std::function<void(const net::NodeRecord&)> introduced = nullptr;
};

class PublicAnswers {
 public:
  // Registers the methods. calls: with public_call_limits. one_lan: private addresses are dialled back, too.
  // methods outlives it.  Threads: the executor's, all members.
  PublicAnswers(PublicServices services, net::MethodTable& methods,
                const std::shared_ptr<net::RequestLimiter>& calls, bool one_lan, std::uint64_t seed);

  // Whether nodes may reserve a place at the relay now; they may not at first.
  void set_relaying(bool on) { relaying_ = on; }

 private:
  net::Answer peers(const net::Caller& from, ByteSpan request);
  net::Answer register_at_tracker(const net::Caller& from, ByteSpan request);
  net::Answer track(const net::Caller& from, net::Method method, ByteSpan request);
  Expected<Bytes> reserve(const net::Caller& from);
  net::Answer check_own(const net::Caller& from, const net::NodeRecord& record) const;
  void dial_back(const net::Caller& from, ByteSpan request, const net::Reply& reply);

  PublicServices services_;
  Rng rng_;
  net::RequestLimiter dial_limiter_;
  std::size_t dialling_ = 0;
  bool relaying_ = false;
  Lifetime lifetime_;
  std::vector<net::MethodTable::Registration> methods_;
};

}  // namespace neuroshard::swarm
