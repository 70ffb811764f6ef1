// A transport whose traffic stays within the user's limits (traffic_meter.h), in both directions and on both
// ends: the calls and streams of connections that it makes, and those that it answers. Who sends waits for
// its turn; who receives asks for the next piece later, so that the other end slows down.
//
// The deadline of a call begins when it is sent, not while it waits here.
#pragma once

#include <memory>

#include "core/base/executor.h"
#include "core/net/line_speed.h"
#include "core/net/peer_channel.h"
#include "core/net/traffic_meter.h"

namespace neuroshard::net {

class LimitedTransport final : public PeerTransport {
 public:
  // All outlive it. line: told what is fetched, and what waits to be sent; the inner transport tells it what
  // leaves. Null: nobody measures.  Threads: the executor's.
  LimitedTransport(PeerTransport& inner, Executor& executor, TrafficMeter& meter, LineSpeed* line = nullptr);
  ~LimitedTransport() override;

  void connect(const Dial& to, Duration deadline, Connected done) override;
  void set_hello(Hello hello) override { inner_.set_hello(std::move(hello)); }
  const Hello& hello() const override { return inner_.hello(); }

  // What the inner transport is to be given in place of `service`, which outlives this or is taken back by
  // null.
  PeerService& serving(PeerService* service);

  class Waiting;  // what waits for its turn

 private:
  class Service;
  PeerTransport& inner_;
  std::shared_ptr<Waiting> waiting_;
  std::unique_ptr<Service> service_;
};

}  // namespace neuroshard::net
