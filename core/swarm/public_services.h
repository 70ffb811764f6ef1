// What any node answers for others that know nobody yet: ping, the address that they are seen at, whether
// they are reached from outside, and peers. Each within limits per caller.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "core/nat/relay_role.h"
#include "core/net/conduct.h"
#include "core/net/node_book.h"
#include "core/net/peer_channel.h"
#include "core/net/request_limiter.h"
#include "core/swarm/tracker.h"

namespace neuroshard::swarm {

struct PublicServices {  // all outlive
  net::PeerTransport& transport;
  const Clock& clock;
  net::NodeBook& book;
  Tracker* tracker = nullptr;            // null: not in this role
  const net::NodeRecord* own = nullptr;  // this node's, once it is signed (sequence > 0)
  nat::RelayRole* relay = nullptr;       // null: not in this role
  net::Conduct* conduct = nullptr;       // told of faults; null: nobody is
  // Who asks for peers tells its own record, signed by it; null: nobody wants to know.
  std::function<void(const net::NodeRecord&)> introduced = nullptr;
};

class PublicAnswers {
 public:
  // one_lan: private addresses are dialled back too.  Threads: one, the executor's.
  PublicAnswers(PublicServices services, bool one_lan, std::uint64_t seed);
  ~PublicAnswers();

  // Whether nodes may reserve a place at the relay now; they may not at first.
  void set_relaying(bool on) { relaying_ = on; }

  // False: not a method of these.
  bool answer(const net::Caller& from, net::Method method, ByteSpan request, const net::Respond& respond);

 private:
  Expected<Bytes> peers(const net::Caller& from, ByteSpan request);
  Expected<Bytes> track(const net::Caller& from, net::Method method, ByteSpan request);
  Expected<Bytes> reserve(const net::Caller& from);
  Expected<void> check_own(const net::Caller& from, const net::NodeRecord& record);
  void fault(const net::Caller& from, net::Fault fault);
  void dial_back(const net::Caller& from, ByteSpan request, const net::Respond& respond);

  PublicServices services_;
  const bool one_lan_;
  Rng rng_;
  net::RequestLimiter limiter_;
  net::RequestLimiter dial_limiter_;
  std::size_t dialling_ = 0;
  bool relaying_ = false;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace neuroshard::swarm
