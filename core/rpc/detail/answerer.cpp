#include "core/rpc/detail/answerer.h"

#include <atomic>

#include "core/net/traffic_meter.h"
#include "core/rpc/detail/stream_core.h"
#include "core/rpc/detail/wire.h"

namespace neuroshard::rpc::detail {
namespace {

using Reactor = grpc::ServerGenericBidiReactor;

class Refusing final : public Reactor {
 public:
  explicit Refusing(const grpc::Status& status) { Finish(status); }
  void OnDone() override { delete this; }
};

// A place, released when gRPC has finished the call.
class Place {
 public:
  Place(std::shared_ptr<Places> places, const net::NodeId& peer, Places::Kind kind)
      : places_(std::move(places)), peer_(peer), kind_(kind) {}
  ~Place() {
    places_->release(held_);
    places_->give_back(peer_, kind_);
  }
  Place(const Place&) = delete;
  Place& operator=(const Place&) = delete;
  bool hold(std::size_t bytes) {
    if (!places_->hold(bytes)) return false;
    held_ += bytes;
    return true;
  }

 private:
  const std::shared_ptr<Places> places_;
  const net::NodeId peer_;
  const Places::Kind kind_;
  std::size_t held_ = 0;
};

class CallReactor final : public Reactor, public Sweepable, public std::enable_shared_from_this<CallReactor> {
 public:
  CallReactor(std::shared_ptr<Shared> shared, const net::Caller& from, std::unique_ptr<Place> place,
              bool greeting)
      : shared_(std::move(shared)), from_(from), place_(std::move(place)), greeting_(greeting) {}

  void begin() {
    self_ = shared_from_this();
    since_ = shared_->now();
    shared_->add(self_);
    if (shared_->stopping) return stop();
    StartRead(&request_);
  }

  void check(MonotonicTime now) override {
    if (read_ || now - since_ <= shared_->options.limits.message_patience) return;
    shared_->count(net::Refusal::TooSlow);
    finish(make_error(ErrorCode::Timeout, "the request did not arrive in time"));
  }
  void stop() override { finish(make_error(ErrorCode::Unavailable, "this node stops")); }

  // Once; later ones are ignored.  Threads: any.
  void finish(Expected<Bytes> answer, bool served = false) {
    if (finished_.exchange(true)) return;
    // Before the answer leaves: the caller may ask again at once.
    if (served) place_.reset();
    if (answer.ok() && answer->size() > net::max_message_bytes)
      answer = make_error(ErrorCode::Internal, "the answer is larger than a message may be");
    if (!answer.ok()) return Finish(to_status(answer.error()));
    wire::CallReply reply;
    reply.set_body(answer->data(), answer->size());
    reply_ = to_buffer(reply);
    if (answer->size() >= net::LineSpeed::bulk_bytes) {
      leaves_ = net::wire_bytes(answer->size());
      shared_->answer_leaves();
    }
    StartWriteAndFinish(&reply_, {}, grpc::Status::OK);
  }

 private:
  void OnReadDone(bool ok) override {
    read_ = true;
    if (!ok) {
      // gRPC reads no message beyond its own limit; a call whose caller has disconnected also ends here, which
      // is no fault.
      shared_->count(net::Refusal::TooLarge);
      return finish(make_error(ErrorCode::Exhausted, "the request is larger than a message may be"));
    }
    if (shared_->stopping) return stop();
    if (greeting_) return greet();
    wire::CallRequest request;
    const std::size_t size = request_.Length();
    if (size > net::max_message_bytes + message_overhead) {
      shared_->count(net::Refusal::TooLarge);
      shared_->fault(from_, net::Fault::Oversized);
      return finish(make_error(ErrorCode::Exhausted, "the request is larger than a message may be"));
    }
    if (!place_->hold(size)) {
      shared_->count(net::Refusal::TooManyCalls);
      return finish(
          make_error(ErrorCode::Exhausted, "this node holds too many requests; try again in a moment"));
    }
    if (!from_buffer(&request_, &request) || request.method() > 0xffff) {
      shared_->count(net::Refusal::Malformed);
      shared_->fault(from_, net::Fault::Malformed);
      return finish(make_error(ErrorCode::Corrupt, "the request can't be read"));
    }
    request_.Clear();
    shared_->mailbox->put([self = self_, method = static_cast<net::Method>(request.method()),
                           body = Bytes(request.body().begin(), request.body().end())]() mutable {
      self->serve(method, std::move(body));
    });
  }

  void greet() {
    if (finished_.exchange(true)) return;
    wire::Hello hello;
    static_cast<void>(hello.ParseFromString(shared_->own_hello()));
    reply_ = to_buffer(hello);
    StartWriteAndFinish(&reply_, {}, grpc::Status::OK);
  }

  // Answers a call whose handler never does.
  struct Answer {
    explicit Answer(std::shared_ptr<CallReactor> to) : call(std::move(to)) {}
    ~Answer() { call->finish(make_error(ErrorCode::Internal, "this node did not answer")); }
    Answer(const Answer&) = delete;
    Answer& operator=(const Answer&) = delete;
    const std::shared_ptr<CallReactor> call;
  };

  void serve(net::Method method, Bytes body) {
    if (shared_->service == nullptr) return stop();
    shared_->service->on_call(
        from_, method, std::move(body),
        [answer = std::make_shared<Answer>(shared_from_this())](Expected<Bytes> result) {
          answer->call->finish(std::move(result), /*served=*/true);
        });
  }

  void OnCancel() override { cancelled_ = true; }
  // gRPC is done when the operating system has the answer's last byte.
  void OnDone() override {
    if (leaves_ != 0) shared_->answer_left(cancelled_ ? 0 : leaves_);
    shared_->remove(this);
    place_.reset();
    self_.reset();
  }

  const std::shared_ptr<Shared> shared_;
  const net::Caller from_;
  std::unique_ptr<Place> place_;
  const bool greeting_;
  std::shared_ptr<CallReactor> self_;
  MonotonicTime since_{};
  std::atomic<bool> read_{false}, finished_{false}, cancelled_{false};
  std::uint64_t leaves_ = 0;  // on the line, of a large answer; written before gRPC has it
  grpc::ByteBuffer request_, reply_;
};

class StreamReactor final : public Reactor, public StreamCore {
 public:
  StreamReactor(std::shared_ptr<Shared> shared, const net::Caller& from, std::unique_ptr<Place> place)
      : StreamCore(shared, shared->options.limits.message_patience), from_(from), place_(std::move(place)) {
    awaits_method_ = true;
  }

  void begin() {
    self_ = own();
    shared_->add(self_);
    if (shared_->stopping) return close(make_error(ErrorCode::Unavailable, "this node stops"));
    shared_->mailbox->put([self = self_] { self->begin_reading(self->shared_->now()); });
  }

 private:
  std::shared_ptr<StreamReactor> own() { return std::static_pointer_cast<StreamReactor>(shared_from_this()); }

  void opened(std::uint32_t method) override {
    if (shared_->service == nullptr || method > 0xffff)
      return break_off(make_error(ErrorCode::Unavailable, "this node does not serve streams now"));
    shared_->service->on_stream(from_, static_cast<net::Method>(method),
                                std::make_shared<StreamHandle>(own()));
  }

  void malformed() override {
    StreamCore::malformed();
    shared_->fault(from_, net::Fault::Malformed);
  }
  void oversized() override {
    StreamCore::oversized();
    shared_->fault(from_, net::Fault::Oversized);
  }
  void start_read(grpc::ByteBuffer* buffer) override { StartRead(buffer); }
  void start_write(const grpc::ByteBuffer* buffer) override { StartWrite(buffer); }
  void close(const Error& reason) override {
    if (!closed_.exchange(true)) Finish(to_status(reason));
  }
  void both_finished() override {
    if (!closed_.exchange(true)) Finish(grpc::Status::OK);
  }

  void OnReadDone(bool ok) override {
    shared_->mailbox->put([self = self_, ok] {
      self->read_done(ok);
      if (!ok) self->gone();
    });
  }
  void OnWriteDone(bool ok) override {
    shared_->mailbox->put([self = self_, ok] {
      self->write_done(ok);
      if (!ok) self->gone();
    });
  }
  void OnCancel() override {
    shared_->mailbox->put([self = self_] { self->gone(); });
  }
  // The other end has disconnected, or broke the rules of the protocol.
  void gone() {
    if (over()) return;
    const Error reason = make_error(ErrorCode::Unavailable, "the other node broke the stream off");
    close(reason);
    ended(reason);
  }
  void OnDone() override {
    shared_->remove(this);
    place_.reset();
    shared_->mailbox->put([self = std::move(self_)] {
      if (!self->over() && !self->closed_) self->gone();
    });
  }

  const net::Caller from_;
  std::unique_ptr<Place> place_;
  std::shared_ptr<StreamReactor> self_;  // until gRPC is done with it; for its threads
  std::atomic<bool> closed_{false};      // Finish was called
};

}  // namespace

bool Places::take(const net::NodeId& peer, Kind kind) {
  const std::lock_guard lock(mutex_);
  const auto found = peers_.find(peer);
  const Taken own = found == peers_.end() ? Taken() : found->second;
  const bool room = kind == Kind::Call
                        ? all_.calls < limits_.calls && own.calls < limits_.calls_per_peer
                        : all_.streams < limits_.streams && own.streams < limits_.streams_per_peer;
  if (!room) return false;
  Taken& taken = peers_[peer];
  ++(kind == Kind::Call ? taken.calls : taken.streams);
  ++(kind == Kind::Call ? all_.calls : all_.streams);
  return true;
}

void Places::give_back(const net::NodeId& peer, Kind kind) {
  const std::lock_guard lock(mutex_);
  Taken& taken = peers_[peer];
  --(kind == Kind::Call ? taken.calls : taken.streams);
  --(kind == Kind::Call ? all_.calls : all_.streams);
  if (taken.calls == 0 && taken.streams == 0) peers_.erase(peer);
}

bool Places::hold(std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  if (held_ + bytes > limits_.held_bytes) return false;
  held_ += bytes;
  return true;
}

void Places::release(std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  held_ -= bytes;
}

Expected<net::Caller> Answerer::admit(const grpc::GenericCallbackServerContext& context, bool any_hello) {
  const auto auth = context.auth_context();
  const auto certificates =
      auth ? auth->FindPropertyValues("x509_pem_cert") : std::vector<grpc::string_ref>();
  if (certificates.size() != 1) {
    shared_->count(net::Refusal::NoCertificate);
    return make_error(ErrorCode::Denied, "the connection shows no certificate");
  }
  NS_ASSIGN_OR_RETURN(const net::NodeId id,
                      shared_->caller_of(std::string(certificates[0].data(), certificates[0].size())));
  const auto& metadata = context.client_metadata();
  const auto found = metadata.find(hello_key);
  const std::string bytes =
      found == metadata.end() ? std::string() : std::string(found->second.data(), found->second.size());
  const auto hello = shared_->check_hello(bytes);
  // A greeting of another version is answered with our version; the caller then says what to upgrade.
  if (!hello.ok() && !(any_hello && hello.error().code == ErrorCode::Unsupported)) return hello.error();
  NS_ASSIGN_OR_RETURN(const platform::Endpoint endpoint, endpoint_of_peer(context.peer()));
  const net::Caller caller{id, endpoint};
  NS_RETURN_IF_ERROR(shared_->check_address(caller));
  return caller;
}

grpc::ServerGenericBidiReactor* Answerer::CreateReactor(grpc::GenericCallbackServerContext* context) {
  const bool greeting = context->method() == hello_path;
  const bool stream = context->method() == stream_path;
  const auto caller = admit(*context, greeting);
  if (!caller.ok()) return new Refusing(to_status(caller.error()));
  if (!greeting && !stream && context->method() != call_path) {
    shared_->count(net::Refusal::UnknownMethod);
    return new Refusing(to_status(make_error(ErrorCode::Unsupported, "this node does not know that call")));
  }
  const Places::Kind kind = stream ? Places::Kind::Stream : Places::Kind::Call;
  if (!places_->take(caller->id, kind)) {
    shared_->count(net::Refusal::TooManyCalls);
    return new Refusing(
        to_status(make_error(ErrorCode::Exhausted, "too many calls are open; try again in a moment")));
  }
  auto place = std::make_unique<Place>(places_, caller->id, kind);
  if (stream) {
    const auto reactor = std::make_shared<StreamReactor>(shared_, *caller, std::move(place));
    reactor->begin();
    return reactor.get();
  }
  const auto reactor = std::make_shared<CallReactor>(shared_, *caller, std::move(place), greeting);
  reactor->begin();
  return reactor.get();
}

}  // namespace neuroshard::rpc::detail
