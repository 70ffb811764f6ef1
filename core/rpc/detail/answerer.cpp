#include "core/rpc/detail/answerer.h"

#include <atomic>
#include <deque>
#include <mutex>
#include <optional>

#include "core/net/address_group.h"
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

// The part of one pool that a call has taken, until gRPC has finished it or it is dropped.
class Place {
 public:
  // Null: there is no room.
  static std::unique_ptr<Place> take(const std::shared_ptr<Places>& places, net::SlotPool Places::*pool,
                                     const net::SlotUser& user, std::size_t count = 1) {
    if (!((*places).*pool).take(user, count)) return nullptr;
    return std::unique_ptr<Place>(new Place(places, pool, user, count));
  }
  ~Place() { ((*places_).*pool_).give_back(user_, count_); }
  Place(const Place&) = delete;
  Place& operator=(const Place&) = delete;

 private:
  Place(std::shared_ptr<Places> places, net::SlotPool Places::*pool, const net::SlotUser& user,
        std::size_t count)
      : places_(std::move(places)), pool_(pool), user_(user), count_(count) {}
  const std::shared_ptr<Places> places_;
  net::SlotPool Places::*const pool_;
  const net::SlotUser user_;
  const std::size_t count_;
};

// Messages without which the chain stands still.
bool is_control(std::uint32_t method) {
  const auto known = static_cast<net::Method>(method);
  return known == net::Method::ChainPost || known == net::Method::ChainStatus;
}

struct CallParts {
  grpc::GenericCallbackServerContext* context;
  std::shared_ptr<Shared> shared;
  std::shared_ptr<Places> places;
  std::shared_ptr<LatePlaces> late;
  net::Caller from;
  net::SlotUser user;
};

}  // namespace

class LatePlaces final {
 public:
  explicit LatePlaces(Duration kept) : kept_(kept) {}
  void keep(std::unique_ptr<Place> place, MonotonicTime now) {
    const std::lock_guard lock(mutex_);
    places_.emplace_back(now, std::move(place));
  }
  void check(MonotonicTime now) {
    const std::lock_guard lock(mutex_);
    while (!places_.empty() && now - places_.front().first > kept_) places_.pop_front();
  }

 private:
  const Duration kept_;
  std::mutex mutex_;
  std::deque<std::pair<MonotonicTime, std::unique_ptr<Place>>> places_;  // bounded by the pool
};

namespace {

class CallReactor final : public Reactor, public Sweepable, public std::enable_shared_from_this<CallReactor> {
 public:
  // arriving: the place of a call whose request has not arrived.
  CallReactor(const CallParts& parts, std::unique_ptr<Place> arriving, bool greeting)
      : context_(parts.context),
        shared_(parts.shared),
        places_(parts.places),
        late_(parts.late),
        from_(parts.from),
        user_(parts.user),
        greeting_(greeting),
        arriving_(std::move(arriving)) {}

  void begin() {
    self_ = shared_from_this();
    since_ = shared_->now();
    shared_->add(self_);
    if (shared_->stopping) return stop();
    StartRead(&request_);
  }

  void check(MonotonicTime now) override {
    if (finished_) return end_if_unread(now);
    if (read_ || now - since_ <= shared_->options.limits.message_patience) return;
    shared_->count(net::Refusal::TooSlow);
    keep_late(now);
    finish(make_error(ErrorCode::Timeout, "the request did not arrive in time"));
  }
  void stop() override { finish(make_error(ErrorCode::Unavailable, "this node stops")); }

  // Once; later ones are ignored.  Threads: any.
  void finish(Expected<Bytes> answer, bool served = false) {
    if (finished_.exchange(true)) return;
    // Before the answer leaves: the caller may ask again at once.
    if (served) {
      shared_->watch.answered(from_.endpoint, user_.rank, request_bytes_, shared_->now());
      give_back();
    }
    if (answer.ok() && answer->size() > net::max_message_bytes)
      answer = make_error(ErrorCode::Internal, "the answer is larger than a message may be");
    if (answer.ok() && !take_leaving(answer->size())) return refuse_answer();
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
    give_back_arriving();
    if (!ok) {
      // gRPC reads no message beyond its own limit; a call whose caller has disconnected also ends here, which
      // is no fault. A late one was counted before.
      if (!finished_) shared_->count(net::Refusal::TooLarge);
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
    net::SlotUser user = user_;
    user.control = is_control(first_method(&request_));
    if (!take_places(user, size)) {
      shared_->count(net::Refusal::TooManyCalls);
      return finish(
          make_error(ErrorCode::Exhausted, "this node answers too many calls; try again in a moment"));
    }
    request_bytes_ = size;
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

  bool take_places(const net::SlotUser& user, std::size_t size) {
    auto place = Place::take(places_, &Places::calls, user);
    auto bytes = place ? Place::take(places_, &Places::held_bytes, user, size) : nullptr;
    if (!bytes) return false;
    const std::lock_guard lock(places_mutex_);
    if (finished_) return false;  // it has been stopped
    place_ = std::move(place);
    bytes_ = std::move(bytes);
    return true;
  }

  void refuse_answer() {
    shared_->count(net::Refusal::TooManyCalls);
    Finish(
        to_status(make_error(ErrorCode::Exhausted, "too many answers wait to leave; try again in a moment")));
  }

  // gRPC keeps an answer until its caller has read it.
  bool take_leaving(std::size_t size) {
    auto leaving = Place::take(places_, &Places::leaving, user_, size);
    if (!leaving) return false;
    const Duration patience = net::call_deadline(shared_->options.limits.answer_patience, 0, size);
    const std::lock_guard lock(places_mutex_);
    leaving_ = std::move(leaving);
    leaves_by_ = shared_->now() + patience;
    return true;
  }

  void end_if_unread(MonotonicTime now) {
    {
      const std::lock_guard lock(places_mutex_);
      if (!leaves_by_ || now <= *leaves_by_) return;
      leaves_by_.reset();
    }
    shared_->count(net::Refusal::TooSlow);
    const std::lock_guard lock(context_mutex_);
    if (context_ != nullptr) context_->TryCancel();
  }

  void give_back() {
    const std::lock_guard lock(places_mutex_);
    place_.reset();
    bytes_.reset();
  }

  void give_back_arriving() {
    const std::lock_guard lock(places_mutex_);
    arriving_.reset();
  }

  void give_back_leaving() {
    const std::lock_guard lock(places_mutex_);
    leaving_.reset();
    leaves_by_.reset();
  }

  // A member on a bad line is no attacker.
  void keep_late(MonotonicTime now) {
    const std::lock_guard lock(places_mutex_);
    if (arriving_ && user_.rank == net::PeerRank::Stranger) late_->keep(std::move(arriving_), now);
  }

  void greet() {
    if (finished_.exchange(true)) return;
    shared_->watch.greeted(from_.endpoint, user_.rank, shared_->now());
    const std::string own = shared_->own_hello();
    if (!take_leaving(own.size())) return refuse_answer();
    wire::Hello hello;
    static_cast<void>(hello.ParseFromString(own));
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
    {
      const std::lock_guard lock(context_mutex_);
      context_ = nullptr;
    }
    if (leaves_ != 0) shared_->answer_left(cancelled_ ? 0 : leaves_);
    shared_->remove(this);
    give_back_arriving();
    give_back();
    give_back_leaving();
    self_.reset();
  }

  std::recursive_mutex context_mutex_;           // gRPC may call OnDone from within TryCancel
  grpc::GenericCallbackServerContext* context_;  // null once gRPC is done with it
  const std::shared_ptr<Shared> shared_;
  const std::shared_ptr<Places> places_;
  const std::shared_ptr<LatePlaces> late_;
  const net::Caller from_;
  const net::SlotUser user_;
  const bool greeting_;
  std::mutex places_mutex_;
  std::unique_ptr<Place> arriving_;       // until the request is here
  std::unique_ptr<Place> place_, bytes_;  // from then on, until it is answered
  std::unique_ptr<Place> leaving_;        // from then on: the answer's bytes
  std::optional<MonotonicTime> leaves_by_;
  std::size_t request_bytes_ = 0;
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
    patience_ = shared_->options.limits.stream_patience;
    shared_->service->on_stream(from_, static_cast<net::Method>(method),
                                std::make_shared<StreamHandle>(own()));
  }

  void arrived(std::size_t bytes) override { shared_->watch.streamed(from_.endpoint, bytes, shared_->now()); }
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

Expected<net::NodeId> Answerer::id_of(const grpc::GenericCallbackServerContext& context) {
  const auto auth = context.auth_context();
  const auto certificates =
      auth ? auth->FindPropertyValues("x509_pem_cert") : std::vector<grpc::string_ref>();
  if (certificates.size() != 1) {
    shared_->count(net::Refusal::NoCertificate);
    return make_error(ErrorCode::Denied, "the connection shows no certificate");
  }
  return shared_->caller_of(std::string(certificates[0].data(), certificates[0].size()));
}

Expected<void> Answerer::admit(const grpc::GenericCallbackServerContext& context, const net::Caller& caller) {
  const bool any_hello = context.method() == hello_path;
  const auto& metadata = context.client_metadata();
  const auto found = metadata.find(hello_key);
  const std::string bytes =
      found == metadata.end() ? std::string() : std::string(found->second.data(), found->second.size());
  const auto hello = shared_->check_hello(bytes);
  // A greeting of another version is answered with our version; the caller then says what to upgrade.
  if (!hello.ok() && !(any_hello && hello.error().code == ErrorCode::Unsupported)) return hello.error();
  NS_RETURN_IF_ERROR(shared_->check_address(caller));
  if (any_hello || context.method() == stream_path || context.method() == call_path) return {};
  shared_->count(net::Refusal::UnknownMethod);
  return make_error(ErrorCode::Unsupported, "this node does not know that call");
}

Answerer::Answerer(std::shared_ptr<Shared> shared)
    : shared_(std::move(shared)),
      places_(std::make_shared<Places>(shared_->options.limits)),
      late_(std::make_shared<LatePlaces>(shared_->options.limits.late_request)) {}

void Answerer::sweep(MonotonicTime now) {
  late_->check(now);
}

grpc::ServerGenericBidiReactor* Answerer::CreateReactor(grpc::GenericCallbackServerContext* context) {
  const auto endpoint = shared_->caller_at(context->peer());
  if (!endpoint.ok()) return new Refusing(to_status(endpoint.error()));
  const auto id = id_of(*context);
  const net::PeerRank rank = id.ok() ? shared_->rank(*id) : net::PeerRank::Stranger;
  // Before the other checks, so that calls that they refuse count.
  if (!shared_->watch.started(*endpoint, rank, shared_->now())) {
    shared_->count(net::Refusal::TooManyCalls);
    return new Refusing(to_status(make_error(ErrorCode::Exhausted, "too many calls were given up")));
  }
  if (!id.ok()) return new Refusing(to_status(id.error()));
  const net::Caller caller{*id, *endpoint};
  if (const auto admitted = admit(*context, caller); !admitted.ok())
    return new Refusing(to_status(admitted.error()));
  const bool greeting = context->method() == hello_path, stream = context->method() == stream_path;
  const net::SlotUser user{caller.id, net::limit_group(caller.endpoint.ip), rank, false};
  auto place = Place::take(places_, stream ? &Places::streams : &Places::arriving, user);
  if (!place) {
    shared_->count(net::Refusal::TooManyCalls);
    return new Refusing(
        to_status(make_error(ErrorCode::Exhausted, "too many calls are open; try again in a moment")));
  }
  if (stream) {
    const auto reactor = std::make_shared<StreamReactor>(shared_, caller, std::move(place));
    reactor->begin();
    return reactor.get();
  }
  const CallParts parts{context, shared_, places_, late_, caller, user};
  const auto reactor = std::make_shared<CallReactor>(parts, std::move(place), greeting);
  reactor->begin();
  return reactor.get();
}

}  // namespace neuroshard::rpc::detail
