// A transport that keeps its traffic within the user's limits (traffic_meter.h), in both directions: for the
// calls and streams of connections that it makes, and for those that it answers. A sender waits for its turn.
// A receiver asks for the next piece later, so that the other end slows down.
//
// The deadline of a call begins when the call is sent, not while it waits here.
#pragma once

#include <memory>

#include "core/base/executor.h"
#include "core/net/line_speed.h"
#include "core/net/peer_channel.h"
#include "core/net/peer_ranks.h"
#include "core/net/traffic_meter.h"

namespace neuroshard::net {

class LimitedTransport final : public PeerTransport {
 public:
  // All outlive it. line: is given what arrives and what waits to be sent; the inner transport gives it what
  // leaves. Null: nothing is measured. ranks: whose calls count as those of strangers; null: nobody's.
  // Threads: the executor's.
  LimitedTransport(PeerTransport& inner, Executor& executor, TrafficMeter& meter, LineSpeed* line = nullptr,
                   const PeerRanks* ranks = nullptr);
  ~LimitedTransport() override;

  void connect(const Dial& to, Duration deadline, Connected done) override;
  void set_hello(Hello hello) override { inner_.set_hello(std::move(hello)); }
  const Hello& hello() const override { return inner_.hello(); }

  // Give the inner transport the result in place of `service`. `service` outlives this, or is withdrawn by
  // null.
  PeerService& serving(PeerService* service);

  class Waiting;  // tasks that wait for their turn

 private:
  class Service;
  PeerTransport& inner_;
  std::shared_ptr<Waiting> waiting_;
  std::unique_ptr<Service> service_;
};

}  // namespace neuroshard::net
