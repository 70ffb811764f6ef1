#include "core/sim/transport.h"

#include "core/base/check.h"
#include "core/net/traffic_meter.h"

namespace neuroshard::sim {
namespace {

// Methods of the simulated wire itself; protocols never see them.
constexpr auto greet_method = static_cast<net::Method>(0xfff0);
constexpr auto chunk_method = static_cast<net::Method>(0xfff1);

// A piece of a stream: number u64 · opened by the sender u8 · kind u8 · method u16 · bytes.
enum class Kind : std::uint8_t { Open, Data, Last, Abort };
constexpr std::size_t chunk_head = 12;

Bytes encode_chunk(std::uint64_t number, bool ours, Kind kind, net::Method method, ByteSpan data) {
  Bytes bytes;
  append_le(bytes, number);
  bytes.push_back(ours ? 1 : 0);
  bytes.push_back(static_cast<std::uint8_t>(kind));
  append_le(bytes, static_cast<std::uint16_t>(method));
  bytes.insert(bytes.end(), data.begin(), data.end());
  return bytes;
}

Error stopped() {
  return make_error(ErrorCode::Cancelled, "the connection was given up");
}

}  // namespace

// One end of a stream. A piece that was sent is answered when the other end has read it: one is under way at
// a time, and a slow reader slows the writer down.
class SimStream final : public std::enable_shared_from_this<SimStream> {
 public:
  SimStream(SimTransport& transport, const net::Contact& peer, net::Method method, std::uint64_t number,
            bool ours, Duration patience)
      : transport_(transport),
        alive_(transport.alive_),
        peer_(peer),
        method_(method),
        number_(number),
        ours_(ours),
        patience_(patience == Duration::max() ? std::chrono::hours(24 * 365) : patience) {}

  void write(Kind kind, Bytes data, net::PeerStream::Written done) {
    if (!*alive_) return;
    if (end_) return later([done, end = *end_] { done(end); });
    if (data.size() > net::max_message_bytes) {
      return later([done] {
        done(make_error(ErrorCode::InvalidArgument, "a message of a stream has at most 4 MiB"));
      });
    }
    transport_.services_.network.caller(transport_.host_)
        .call(peer_, chunk_method, encode_chunk(number_, ours_, kind, method_, data), patience_,
              [self = shared_from_this(), done = std::move(done)](Expected<Bytes> answer) {
                if (self->end_) return done(*self->end_);
                if (answer.ok()) return done({});
                if (answer.error().code == ErrorCode::Timeout)
                  answer = make_error(ErrorCode::Timeout, "nothing moved on the stream for too long");
                self->fail(answer.error());
                done(*self->end_);
              });
  }

  void finish() {
    if (std::exchange(own_last_, true)) return;
    write(Kind::Last, {}, [](Expected<void>) {});
  }

  void read(net::PeerStream::Read done) {
    NS_CHECK(!reader_);
    if (end_) return later([done, end = *end_] { done(end); });
    if (peer_last_ && !waiting_) return later([done] { done(std::optional<ByteChain>()); });
    reader_ = std::move(done);
    if (!*alive_) return;
    if (waiting_) return later([self = shared_from_this()] { self->deliver(); });
    const std::uint64_t turn = ++reads_;
    transport_.services_.world.after(patience_, [self = shared_from_this(), turn] {
      if (!self->reader_ || self->reads_ != turn || self->end_) return;
      self->fail(make_error(ErrorCode::Timeout, "nothing moved on the stream for too long"));
    });
  }

  void break_off(const Error& reason) {
    if (end_) return;
    Bytes told = {static_cast<std::uint8_t>(reason.code)};
    told.insert(told.end(), reason.message.begin(), reason.message.end());
    write(Kind::Abort, std::move(told), [](Expected<void>) {});
    fail(make_error(ErrorCode::Cancelled, reason.message));
  }

  void release() {
    if (!own_last_ || !peer_last_)
      break_off(make_error(ErrorCode::Cancelled, "the other node gave the stream up"));
  }

  void take(Kind kind, Bytes data, const net::Respond& respond) {
    if (end_) return respond(make_error(ErrorCode::Unavailable, "the stream has ended"));
    if (kind == Kind::Abort) {
      respond(Bytes());
      NS_CHECK(!data.empty());
      return fail(make_error(static_cast<ErrorCode>(data[0]), std::string(data.begin() + 1, data.end())));
    }
    if (waiting_) return respond(make_error(ErrorCode::Corrupt, "a second piece before the first was read"));
    waiting_ = Waiting{kind, std::move(data), respond};
    if (kind == Kind::Last) peer_last_ = true;
    deliver();
  }

  void fail(const Error& reason) {
    if (end_) return;
    end_ = reason;
    waiting_.reset();
    if (reader_) later([reader = std::exchange(reader_, nullptr), reason] { reader(reason); });
  }

  // Its transport goes and sends no more events. A reader holds its stream, so the stream would hold itself for
  // ever.
  void forget() {
    const auto reader = std::exchange(reader_, nullptr);
    const auto waiting = std::exchange(waiting_, std::nullopt);
  }

 private:
  struct Waiting {
    Kind kind;
    Bytes data;
    net::Respond respond;
  };

  void deliver() {
    if (!waiting_ || end_ || (!reader_ && waiting_->kind != Kind::Last)) return;
    Waiting waiting = std::move(*waiting_);
    waiting_.reset();
    waiting.respond(Bytes());
    if (!reader_) return;
    const auto reader = std::exchange(reader_, nullptr);
    if (waiting.kind == Kind::Last) return reader(std::optional<ByteChain>());
    reader(std::optional<ByteChain>(std::move(waiting.data)));
  }
  void later(Executor::Task task) {
    if (*alive_) transport_.post(std::move(task));
  }

  SimTransport& transport_;
  const std::shared_ptr<bool> alive_;
  const net::Contact peer_;
  const net::Method method_;
  const std::uint64_t number_;
  const bool ours_;
  const Duration patience_;
  net::PeerStream::Read reader_;
  std::uint64_t reads_ = 0;
  std::optional<Waiting> waiting_;
  bool own_last_ = false, peer_last_ = false;
  std::optional<Error> end_;
};

namespace {

class Handle final : public net::PeerStream {
 public:
  explicit Handle(std::shared_ptr<SimStream> stream) : stream_(std::move(stream)) {}
  ~Handle() override { stream_->release(); }
  void write(Bytes message, Written done) override {
    NS_CHECK(!message.empty());
    stream_->write(Kind::Data, std::move(message), std::move(done));
  }
  void finish() override { stream_->finish(); }
  void read(Read done) override { stream_->read(std::move(done)); }
  void break_off(Error reason) override { stream_->break_off(reason); }

 private:
  std::shared_ptr<SimStream> stream_;
};

}  // namespace

class SimChannel final : public net::PeerChannel {
 public:
  SimChannel(SimTransport& transport, const net::Contact& peer, net::Hello hello)
      : transport_(transport), transport_alive_(transport.alive_), peer_(peer), hello_(std::move(hello)) {
    std::erase_if(transport.channels_, [](const auto& weak) { return weak.expired(); });
    transport.channels_.push_back(calls_);
  }
  ~SimChannel() override {
    *open_ = false;
    if (!*transport_alive_) return;
    for (const auto& [number, done] : *calls_) transport_.post([done = done] { (*done)(stopped()); });
    for (const auto& weak : streams_)
      if (const auto stream = weak.lock()) stream->break_off(stopped());
  }

  const net::NodeId& id() const override { return peer_.id; }
  const net::Hello& hello() const override { return hello_; }
  platform::Endpoint endpoint() const override { return peer_.endpoint; }

  void call(net::Method method, Bytes request, Duration deadline, net::CallDone done) override {
    if (request.size() > net::max_message_bytes) {
      return transport_.post([done = std::move(done)] {
        done(make_error(ErrorCode::InvalidArgument,
                        "a request has at most 4 MiB; more goes through a stream"));
      });
    }
    const std::uint64_t number = next_call_++;
    calls_->emplace(number, std::make_shared<net::CallDone>(std::move(done)));
    transport_.services_.network.caller(transport_.host_)
        .call(peer_, method, std::move(request), deadline,
              [open = open_, alive = transport_alive_, calls = calls_, number](Expected<Bytes> answer) {
                if (!*open || !*alive) return;
                const auto found = calls->find(number);
                const auto done = found->second;
                calls->erase(found);
                (*done)(std::move(answer));
              });
  }

  std::shared_ptr<net::PeerStream> open(net::Method method, Duration patience) override {
    const std::uint64_t number = transport_.next_stream_++;
    const auto stream = std::make_shared<SimStream>(transport_, peer_, method, number, true, patience);
    transport_.streams_[{peer_.id, number, true}] = stream;
    std::erase_if(streams_, [](const auto& weak) { return weak.expired(); });
    streams_.push_back(stream);
    stream->write(Kind::Open, {}, [](Expected<void>) {});
    return std::make_shared<Handle>(stream);
  }

 private:
  SimTransport& transport_;
  const std::shared_ptr<bool> transport_alive_;
  const std::shared_ptr<bool> open_ = std::make_shared<bool>(true);
  const net::Contact peer_;
  const net::Hello hello_;
  const std::shared_ptr<SimTransport::Calls> calls_ = std::make_shared<SimTransport::Calls>();
  std::uint64_t next_call_ = 1;
  std::vector<std::weak_ptr<SimStream>> streams_;
};

SimTransport::SimTransport(TransportServices services, Executor& executor, const net::NodeId& id,
                           const platform::Endpoint& endpoint, Nat nat, net::Hello hello)
    : services_(services), executor_(executor), id_(id), hello_(std::move(hello)) {
  host_ =
      services_.network.add(id, endpoint, nat,
                            [this](const net::Caller& from, net::Method method, ByteSpan request,
                                   const net::Respond& respond) { handle(from, method, request, respond); });
  services_.population[id] = this;
}

SimTransport::~SimTransport() {
  *alive_ = false;
  services_.network.set_handler(host_, nullptr);
  services_.population.erase(id_);
  for (const auto& [key, weak] : std::exchange(streams_, {}))
    if (const auto stream = weak.lock()) stream->forget();
  // A waiting caller holds its channel, and the channel holds the caller.
  for (const auto& weak : std::exchange(channels_, {}))
    if (const auto calls = weak.lock()) std::exchange(*calls, {}).clear();
}

void SimTransport::post(Executor::Task task) {
  static_cast<void>(executor_.post([alive = alive_, task = std::move(task)] {
    if (*alive) task();
  }));
}

void SimTransport::connect(const net::Dial& to, Duration deadline, Connected done) {
  if (!to.id) {
    return post([done = std::move(done)] {
      done(make_error(ErrorCode::Unsupported, "the simulated network dials known nodes only"));
    });
  }
  const net::Contact peer{*to.id, to.endpoint};
  const auto refuse = [this](const Expected<void>& why) {
    services_.refusals.count(why.error().code == ErrorCode::Denied ? net::Refusal::OtherNetwork
                                                                   : net::Refusal::OtherVersion);
    return why.error();
  };
  services_.network.caller(host_).call(
      peer, greet_method, {}, deadline,
      [this, alive = alive_, peer, refuse, done = std::move(done)](Expected<Bytes> answer) {
        if (!*alive) return;
        const auto found = services_.population.find(peer.id);
        if (answer.ok() && found != services_.population.end()) {
          const auto fits = net::check_hello(hello_, found->second->hello());
          if (!fits.ok()) return done(refuse(fits));
          greeted_.insert(peer.id);  // hellos were exchanged: its streams answer on this connection
          return done(std::shared_ptr<net::PeerChannel>(
              std::make_shared<SimChannel>(*this, peer, found->second->hello())));
        }
        if (answer.ok()) return done(make_error(ErrorCode::Unavailable, "the peer has gone"));
        if (answer.error().code == ErrorCode::Timeout)
          answer = make_error(ErrorCode::Timeout, "no connection in time");
        done(answer.error());
      });
}

void SimTransport::handle(const net::Caller& from, net::Method method, ByteSpan request,
                          const net::Respond& respond) {
  if (const auto reason = services_.bans.reason(from.id)) {
    services_.refusals.count(net::Refusal::Banned);
    return respond(make_error(ErrorCode::Denied, "the peer is banned: " + *reason));
  }
  if (method == greet_method) return greet(from, respond);
  if (greeted_.count(from.id) == 0) {
    services_.refusals.count(net::Refusal::NoHello);
    return respond(make_error(ErrorCode::Denied, "the call brings no hello that can be read"));
  }
  if (method == chunk_method) return take_chunk(from, request, respond);
  serve_call(from, method, request, respond);
}

void SimTransport::greet(const net::Caller& from, const net::Respond& respond) {
  const auto found = services_.population.find(from.id);
  if (found == services_.population.end()) return;
  if (const auto fits = net::check_hello(hello_, found->second->hello()); !fits.ok()) {
    services_.refusals.count(fits.error().code == ErrorCode::Denied ? net::Refusal::OtherNetwork
                                                                    : net::Refusal::OtherVersion);
    return respond(fits.error());
  }
  constexpr std::size_t max_greeted = 4096;
  if (greeted_.size() >= max_greeted) greeted_.clear();  // they greet again
  greeted_.insert(from.id);
  respond(Bytes());
}

void SimTransport::serve_call(const net::Caller& from, net::Method method, ByteSpan request,
                              const net::Respond& respond) {
  if (service_ == nullptr) return respond(make_error(ErrorCode::Unavailable, "this node stops"));
  std::size_t& calls = calls_[from.id];
  if (calls >= max_calls) {
    services_.refusals.count(net::Refusal::TooManyCalls);
    return respond(make_error(ErrorCode::Exhausted, "too many calls are under way; try again in a moment"));
  }
  ++calls;
  // An answer that never comes is answered when the last copy goes.
  struct Answer {
    ~Answer() {
      if (*alive && --transport->calls_[peer] == 0) transport->calls_.erase(peer);
      if (!std::exchange(said, true)) respond(make_error(ErrorCode::Internal, "this node did not answer"));
    }
    SimTransport* transport;
    std::shared_ptr<bool> alive;
    net::NodeId peer;
    net::Respond respond;
    bool said = false;
  };
  auto answer = std::shared_ptr<Answer>(new Answer{this, alive_, from.id, respond});
  service_->on_call(from, method, Bytes(request.begin(), request.end()),
                    [this, alive = alive_, answer = std::move(answer)](Expected<Bytes> result) {
                      if (std::exchange(answer->said, true)) return;
                      if (!*alive) return answer->respond(std::move(result));
                      this->answer(answer->respond, std::move(result));
                    });
}

void SimTransport::answer(const net::Respond& respond, Expected<Bytes> result) {
  const std::size_t size = result.ok() ? result->size() : 0;
  respond(std::move(result));
  if (services_.line == nullptr || size < net::LineSpeed::bulk_bytes) return;
  services_.line->begin(net::LineWay::Up);
  services_.world.at(services_.network.sent_at(host_), [line = services_.line, size] {
    line->carried(net::LineWay::Up, net::wire_bytes(size));
    line->end(net::LineWay::Up);
  });
}

void SimTransport::take_chunk(const net::Caller& from, ByteSpan request, const net::Respond& respond) {
  NS_CHECK(request.size() >= chunk_head);
  const auto number = load_le<std::uint64_t>(request.data());
  const bool theirs = request[8] != 0;
  const auto kind = static_cast<Kind>(request[9]);
  const auto method = static_cast<net::Method>(load_le<std::uint16_t>(request.data() + 10));
  const ByteSpan data = request.subspan(chunk_head);
  const StreamKey key{from.id, number, !theirs};
  if (kind == Kind::Open) {
    if (service_ == nullptr) return respond(make_error(ErrorCode::Unavailable, "this node stops"));
    const auto stream = std::make_shared<SimStream>(*this, net::Contact{from.id, from.endpoint}, method,
                                                    number, false, net::stream_patience);
    std::erase_if(streams_, [](const auto& entry) { return entry.second.expired(); });
    std::weak_ptr<SimStream>& there = streams_[key];
    // Its numbers begin anew, so what it had opened before has ended with its connections.
    if (const auto old = there.lock())
      old->fail(make_error(ErrorCode::Unavailable, "the other node has started again"));
    there = stream;
    respond(Bytes());
    return service_->on_stream(from, method, std::make_shared<Handle>(stream));
  }
  const auto found = streams_.find(key);
  const auto stream = found == streams_.end() ? nullptr : found->second.lock();
  if (stream == nullptr)
    return respond(make_error(ErrorCode::Unavailable, "the other node broke the stream off"));
  stream->take(kind, Bytes(data.begin(), data.end()), respond);
}

}  // namespace neuroshard::sim
