// The way from one end of a session to its next hop. Keeps each micro-batch that was sent until its result is there,
// so that another holder of the same layers can get them again when the hop is lost.
//
// Both a driver and a stage have one; so a driver that repeats the start of a step, and a stage that repeats its
// outputs, are the same thing.
// Of a text everything that was sent is kept, as another stage needs it for its caches.
//
// A hop that is there and never follows the route counts as lost. Each end waits as long as the hops behind it may take one after
// the other, so the one before the silent hop is the first to say so.
//
// Memory: the payloads that are kept: at most the route's window of them, or its positions. The owner says what the driver has
// finished, and sends nothing while too much waits for a slow reader. Threads: the executor's.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>

#include "core/pipeline/exchange_log.h"
#include "core/pipeline/frame_stream.h"
#include "core/pipeline/messages.h"

namespace neuroshard::pipeline {

// Opens streams of sessions to other nodes.
class Lines {
 public:
  using Opened = std::function<void(Expected<std::shared_ptr<net::PeerStream>>)>;
  virtual ~Lines() = default;
  // `done` once, later, on the executor. The end of what it returns gives the attempt up: while it waits for its turn, it is
  // not made, and `done` is not called. Null: it waits for nothing.
  virtual std::unique_ptr<TimerHandle> open(const net::NodeId& peer, Opened done) = 0;
};

// Services of every end of a session; all outlive it.
struct Surroundings {
  Lines& lines;
  Executor& executor;
  const Clock& clock;
  ExchangeLog& exchanges;
  net::NodeId own{};
  compute::ModelShape shape;
  FrameTimes times{};
};

class NextHop {
 public:
  // Each may destroy the hop.
  struct Events {
    std::function<void(const Result&, Bytes rows)> result;
    std::function<void(const Lost&)> lost;  // this hop or a later one
    // All later hops follow the route that follow() named last. Null: nobody waits for that.
    std::function<void()> ready = nullptr;
  };
  NextHop(const Surroundings& surroundings, Events events);

  // The next hop is route.hops[position]. Opens a stream there unless there is one, tells the route, and sends again
  // what has no result.
  void follow(const Route& route, std::size_t position);
  // payload: as payload_bytes() says.
  // Each index once.
  void send(const Work& work, SharedBytes payload);
  // The driver has finished all of a lower index, also what has no result here: another node gave it one. It is not kept any
  // more, and a result that comes later counts for nothing. Not of texts with positions, which are kept as a whole.
  void forget_below(std::uint64_t index);
  // The hop counts as lost until follow() names one.
  void give_up(const Error& why);
  void close(std::uint64_t finished_below);  // the session is over
  bool connected() const { return stream_ != nullptr; }
  std::size_t unanswered() const { return unanswered_.size(); }
  // Messages that the next hop has not taken.
  std::size_t waiting() const { return stream_ == nullptr ? 0 : stream_->waiting(); }

 private:
  struct Sent {
    Work work;
    SharedBytes payload;
    std::uint64_t targets = 0;  // of whole sequences
  };
  const RouteHop& hop() const { return route_.hops[position_]; }
  void open();
  void opened(std::shared_ptr<net::PeerStream> stream);
  void transmit(const Sent& sent);
  Expected<std::size_t> admit(ByteSpan header) const;
  bool fits(const Result& result) const;  // of work that has no result
  void received(ByteSpan header, Bytes payload);
  void received(const Lost& lost);
  void await_ready();
  void lose(const Error& error);

  const Surroundings around_;
  const std::shared_ptr<const Events> events_;
  Route route_;
  std::size_t position_ = 0;
  std::unique_ptr<FrameStream> stream_;
  std::uint64_t attempt_ = 0;  // to open a stream; an earlier one's answer is of no interest
  bool opening_ = false;
  std::unique_ptr<TimerHandle> turn_;   // of the attempt
  std::map<std::uint64_t, Sent> kept_;  // by index
  std::set<std::uint64_t> unanswered_;
  std::uint64_t finished_below_ = 0;
  std::unique_ptr<TimerHandle> patience_;  // with the hops behind; null: they are ready, or one is lost
  std::set<std::uint8_t> reported_;  // positions of hops that a later one has said are lost from this route
  Lifetime lifetime_;
};

}  // namespace neuroshard::pipeline
