#include "core/net/limited_transport.h"

#include <algorithm>
#include <map>
#include <utility>

#include "core/base/lifetime.h"
#include "core/net/mailbox.h"

namespace neuroshard::net {

// Tasks that wait for their turn. An owner that ends first drops its own.
class LimitedTransport::Waiting : public std::enable_shared_from_this<Waiting> {
 public:
  Waiting(Executor& waiting_executor, TrafficMeter& traffic_meter, LineSpeed* line_speed)
      : executor(waiting_executor),
        meter(traffic_meter),
        line(line_speed),
        results_(std::make_shared<Mailbox>(waiting_executor)) {}

  using Ticket = std::uint64_t;
  // Runs `task` after the wait; at once, without a ticket, when there is none.
  Ticket after(Duration wait, Executor::Task task) {
    if (wait <= Duration(0)) {
      task();
      return 0;
    }
    const Ticket ticket = ++last_;
    timers_[ticket] = executor.post_after(wait, [self = weak_from_this(), ticket, task = std::move(task)] {
      const auto held = self.lock();
      if (!held) return;
      // The timer must not be destroyed from within itself before the task is done.
      const auto timer = std::move(held->timers_[ticket]);
      held->timers_.erase(ticket);
      task();
    });
    return ticket;
  }
  void drop(Ticket ticket) { timers_.erase(ticket); }
  void later(Executor::Task task) { results_->put(std::move(task)); }
  void end() {
    timers_.clear();
    results_->close();
  }

  Executor& executor;
  TrafficMeter& meter;
  LineSpeed* const line;

 private:
  const std::shared_ptr<Mailbox> results_;  // a full executor must lose none
  Ticket last_ = 0;
  std::map<Ticket, std::unique_ptr<TimerHandle>> timers_;
};

namespace {

using Waiting = LimitedTransport::Waiting;

Error cancelled() {
  return make_error(ErrorCode::Cancelled, "the connection was given up");
}

class LimitedStream final : public PeerStream {
 public:
  LimitedStream(std::shared_ptr<PeerStream> inner, std::shared_ptr<Waiting> waiting)
      : inner_(std::move(inner)), waiting_(std::move(waiting)) {}
  ~LimitedStream() override { give_up(); }

  void write(Bytes message, Written done) override {
    const auto wait = waiting_->meter.sent(message.size());
    if (!wait.ok()) return waiting_->later([done = std::move(done), error = wait.error()] { done(error); });
    if (*wait <= Duration(0)) return inner_->write(std::move(message), std::move(done));
    // The callback may hold the stream, so the timer holds the callback, not the stream. The stream drops the
    // timer when it ends.
    const auto waits = std::make_shared<Written>(std::move(done));
    written_ = waits;
    write_ = waiting_->after(*wait, [this, waits, message = std::move(message)]() mutable {
      write_ = 0;
      inner_->write(std::move(message), std::exchange(*waits, nullptr));
    });
  }
  void finish() override { inner_->finish(); }

  void read(Read done) override {
    // The wait for the last message ends before the next one is read.
    if (debt_ <= Duration(0)) return inner_read(std::move(done));
    const auto waits = std::make_shared<Read>(std::move(done));
    reading_ = waits;
    read_ = waiting_->after(std::exchange(debt_, Duration(0)), [this, waits] {
      read_ = 0;
      inner_read(std::exchange(*waits, nullptr));
    });
  }
  bool holds_read() const override { return read_ != 0; }

  void break_off(Error reason) override {
    give_up();
    inner_->break_off(std::move(reason));
  }

 private:
  // Callbacks that still wait get Cancelled.
  void give_up() {
    const auto written = written_.lock();
    const auto reading = reading_.lock();
    waiting_->drop(std::exchange(write_, 0));
    waiting_->drop(std::exchange(read_, 0));
    if (written && *written)
      waiting_->later([done = std::exchange(*written, nullptr)] { done(cancelled()); });
    if (reading && *reading)
      waiting_->later([done = std::exchange(*reading, nullptr)] { done(cancelled()); });
  }
  void inner_read(Read done) {
    inner_->read(
        [life = lifetime_.token(), this, done = std::move(done)](Expected<std::optional<ByteChain>> result) {
          if (life.alive() && result.ok() && result->has_value())
            debt_ = waiting_->meter.received((*result)->size());
          done(std::move(result));
        });
  }

  std::shared_ptr<PeerStream> inner_;
  std::shared_ptr<Waiting> waiting_;
  std::weak_ptr<Written> written_;
  std::weak_ptr<Read> reading_;
  Waiting::Ticket write_ = 0, read_ = 0;
  Duration debt_{0};
  Lifetime lifetime_;
};

// Calls with small answers that are needed soon: earlier received bytes do not delay them.
bool is_brief(Method method) {
  switch (method) {
    case Method::Ping:
    case Method::AddressEcho:
    case Method::DialBack:
    case Method::RelayReserve:
    case Method::Punch:
    case Method::LetIn:
    case Method::TrackerRegister:
    case Method::TrackerHeartbeat:
    case Method::DhtPing:
    case Method::DhtFindNode:
    case Method::DhtFindValue:
    case Method::DhtStore:
    case Method::ChainPost:
    case Method::ChainStatus: return true;
    default: return false;
  }
}

// Calls whose answers are pieces of something large.
bool fetches_bulk(Method method) {
  return method == Method::RoundPiece || method == Method::ContentPiece;
}

class LimitedChannel final : public PeerChannel {
 public:
  LimitedChannel(std::shared_ptr<PeerChannel> inner, std::shared_ptr<Waiting> waiting)
      : inner_(std::move(inner)), waiting_(std::move(waiting)) {}
  ~LimitedChannel() override {
    for (auto& [number, call] : calls_) {
      waiting_->drop(call.ticket);
      waiting_->later([done = std::move(call.done)] { done(cancelled()); });
    }
  }
  const NodeId& id() const override { return inner_->id(); }
  const Hello& hello() const override { return inner_->hello(); }
  platform::Endpoint endpoint() const override { return inner_->endpoint(); }

  void call(Method method, Bytes request, Duration deadline, CallDone done) override {
    const auto wait = waiting_->meter.sent(request.size());
    if (!wait.ok()) return waiting_->later([done = std::move(done), error = wait.error()] { done(error); });
    const auto fetching =
        fetches_bulk(method) ? std::make_shared<LineDemand>(waiting_->line, LineWay::Down) : nullptr;
    CallDone counted = [waiting = waiting_, fetching, done = std::move(done)](Expected<Bytes> answer) {
      // A received answer counts in any case; it delays the next request.
      if (answer.ok()) static_cast<void>(waiting->meter.received(answer->size()));
      if (answer.ok() && fetching && waiting->line != nullptr)
        waiting->line->carried(LineWay::Down, wire_bytes(answer->size()));
      done(std::move(answer));
    };
    const Duration turn = is_brief(method) ? *wait : std::max(*wait, waiting_->meter.behind());
    if (turn <= Duration(0)) return inner_->call(method, std::move(request), deadline, std::move(counted));
    const std::uint64_t number = ++last_;
    calls_[number].done = std::move(counted);
    calls_[number].ticket =
        waiting_->after(turn, [this, number, method, deadline, request = std::move(request)]() mutable {
          CallDone waited = std::move(calls_[number].done);
          calls_.erase(number);
          inner_->call(method, std::move(request), deadline, std::move(waited));
        });
  }
  std::shared_ptr<PeerStream> open(Method method, Duration patience) override {
    return std::make_shared<LimitedStream>(inner_->open(method, patience), waiting_);
  }

 private:
  struct Call {
    CallDone done;
    Waiting::Ticket ticket = 0;
  };
  std::shared_ptr<PeerChannel> inner_;
  std::shared_ptr<Waiting> waiting_;
  std::uint64_t last_ = 0;
  std::map<std::uint64_t, Call> calls_;
};

}  // namespace

class LimitedTransport::Service final : public PeerService {
 public:
  Service(std::shared_ptr<Waiting> waiting, const PeerRanks* ranks)
      : waiting_(std::move(waiting)), ranks_(ranks) {}

  void on_call(const Caller& from, Method method, Bytes request, Respond respond) override {
    waiting_->meter.received_unasked(request.size());
    const bool stranger = is_stranger(from);
    if (stranger) waiting_->meter.of_stranger(request.size());
    const auto open = stranger ? waiting_->meter.check_strangers() : waiting_->meter.check();
    if (!open.ok()) return respond(open.error());
    if (service == nullptr) return;
    service->on_call(from, method, std::move(request),
                     [waiting = waiting_, stranger, respond = std::move(respond)](Expected<Bytes> answer) {
                       const std::size_t size = answer.ok() ? answer->size() : 0;
                       const auto wait = waiting->meter.sent(size);
                       if (!wait.ok()) return respond(wait.error());
                       if (stranger) waiting->meter.of_stranger(size);
                       const bool bulk = answer.ok() && answer->size() >= LineSpeed::bulk_bytes;
                       const auto sending =
                           bulk ? std::make_shared<LineDemand>(waiting->line, LineWay::Up) : nullptr;
                       waiting->after(*wait, [respond, sending, answer = std::move(answer)]() mutable {
                         respond(std::move(answer));
                       });
                     });
  }
  void on_stream(const Caller& from, Method method, std::shared_ptr<PeerStream> stream) override {
    const auto open = is_stranger(from) ? waiting_->meter.check_strangers() : waiting_->meter.check();
    if (!open.ok()) return stream->break_off(open.error());
    if (service == nullptr) return;
    service->on_stream(from, method, std::make_shared<LimitedStream>(std::move(stream), waiting_));
  }

  PeerService* service = nullptr;

 private:
  bool is_stranger(const Caller& from) const {
    return ranks_ != nullptr && ranks_->of(from.id) == PeerRank::Stranger;
  }
  std::shared_ptr<Waiting> waiting_;
  const PeerRanks* const ranks_;
};

LimitedTransport::LimitedTransport(PeerTransport& inner, Executor& executor, TrafficMeter& meter,
                                   LineSpeed* line, const PeerRanks* ranks)
    : inner_(inner),
      waiting_(std::make_shared<Waiting>(executor, meter, line)),
      service_(std::make_unique<Service>(waiting_, ranks)) {}

LimitedTransport::~LimitedTransport() {
  waiting_->end();
}

void LimitedTransport::connect(const Dial& to, Duration deadline, Connected done) {
  if (const auto open = waiting_->meter.check(); !open.ok())
    return waiting_->later([done = std::move(done), error = open.error()] { done(error); });
  inner_.connect(
      to, deadline,
      [waiting = waiting_, done = std::move(done)](Expected<std::shared_ptr<PeerChannel>> channel) {
        if (!channel.ok()) return done(channel.error());
        done(std::shared_ptr<PeerChannel>(std::make_shared<LimitedChannel>(std::move(*channel), waiting)));
      });
}

PeerService& LimitedTransport::serving(PeerService* service) {
  service_->service = service;
  return *service_;
}

}  // namespace neuroshard::net
