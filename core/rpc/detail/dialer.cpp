#include "core/rpc/detail/dialer.h"

#include <grpc/grpc_security.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/security/tls_credentials_options.h>
#include <grpcpp/support/channel_arguments.h>

#include <unordered_set>

#include "core/base/check.h"
#include "core/base/lifetime.h"
#include "core/crypto/certificate.h"
#include "core/rpc/detail/grpc_process.h"
#include "core/rpc/detail/stream_core.h"
#include "core/rpc/detail/verifier.h"
#include "core/rpc/detail/wire.h"

namespace neuroshard::rpc::detail {
namespace {

std::shared_ptr<grpc::Channel> make_channel(const std::shared_ptr<Shared>& shared, const Provider& provider,
                                            const net::Dial& to, Duration deadline,
                                            const std::shared_ptr<Verdict>& verdict) {
  grpc::experimental::TlsChannelCredentialsOptions tls;
  tls.set_certificate_provider(provider);
  tls.watch_identity_key_cert_pairs();
  tls.set_verify_server_certs(false);  // the verifier checks them
  tls.set_check_call_host(false);
  tls.set_certificate_verifier(make_verifier(shared, to.id, verdict));
  grpc::ChannelArguments arguments;
  arguments.SetSslTargetNameOverride(crypto::certificate_name);
  arguments.SetMaxReceiveMessageSize(static_cast<int>(net::max_message_bytes + message_overhead));
  arguments.SetInt(GRPC_ARG_MAX_METADATA_SIZE, max_metadata_bytes);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
  arguments.SetInt(GRPC_ARG_SERVICE_CONFIG_DISABLE_RESOLUTION, 1);
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);  // a pin is never shared
  const auto limit = std::chrono::duration_cast<std::chrono::milliseconds>(deadline).count();
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, static_cast<int>(limit));
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 200);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, 20'000);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 10'000);
  // By default gRPC stops after two pings without data, and a stream that only waits would never learn that the peer
  // is gone.
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);  // no limit
  return grpc::CreateCustomChannel(target_of(to.endpoint), grpc::experimental::TlsCredentials(tls),
                                   arguments);
}

constexpr char given_up[] = "the connection was given up";

// A unary call. gRPC keeps it until its reaction.
struct Call {
  grpc::ClientContext context;
  grpc::ByteBuffer request, reply;
};

class ClientStream final : public StreamCore,
                           public grpc::ClientBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer> {
 public:
  ClientStream(std::shared_ptr<Shared> shared, Duration patience) : StreamCore(std::move(shared), patience) {}

  void begin(grpc::GenericStub& stub, net::Method method) {
    self_ = own();
    context_.AddMetadata(hello_key, shared_->own_hello());
    stub.PrepareBidiStreamingCall(&context_, stream_path, {}, this);
    AddHold();  // operations are started from outside of reactions
    held_ = true;
    StartCall();
    wire::Chunk chunk;
    chunk.set_method(static_cast<std::uint32_t>(method));
    send(to_buffer(chunk), nullptr);
    shared_->add(own());
  }

 private:
  std::shared_ptr<ClientStream> own() { return std::static_pointer_cast<ClientStream>(shared_from_this()); }

  void start_read(grpc::ByteBuffer* buffer) override {
    if (held_) return StartRead(buffer);
    shared_->mailbox->put([self = own()] { self->read_done(false); });
  }
  void start_write(const grpc::ByteBuffer* buffer) override {
    if (held_) return StartWrite(buffer);
    shared_->mailbox->put([self = own()] { self->write_done(false); });
  }
  void close(const Error&) override {
    context_.TryCancel();
    let_go();
  }
  // The answering end closes the call; a read sees it.
  void both_finished() override { begin_reading(shared_->now()); }

  void let_go() {
    if (!std::exchange(held_, false)) return;
    RemoveHold();
  }

  void OnReadDone(bool ok) override {
    shared_->mailbox->put([self = self_, ok] {
      self->read_done(ok);
      if (!ok) self->let_go();
    });
  }
  void OnWriteDone(bool ok) override {
    shared_->mailbox->put([self = self_, ok] {
      self->write_done(ok);
      if (!ok) self->let_go();
    });
  }
  void OnDone(const grpc::Status& status) override {
    shared_->remove(this);
    shared_->mailbox->put([self = std::move(self_), status] {
      self->ended(status.ok() ? make_error(ErrorCode::Unavailable, "the other node ended the stream early")
                              : to_error(status));
    });
  }

  std::shared_ptr<ClientStream> self_;  // until gRPC is done with it; for its threads
  grpc::ClientContext context_;
  bool held_ = false;
};

class Channel final : public net::PeerChannel {
 public:
  Channel(std::shared_ptr<Shared> shared, std::shared_ptr<grpc::Channel> channel,
          std::shared_ptr<Verdict> verdict, const net::Dial& to)
      : shared_(std::move(shared)),
        verdict_(std::move(verdict)),
        endpoint_(to.endpoint),
        stub_(std::move(channel)) {}

  ~Channel() override {
    for (const auto& call : calls_) call->context.TryCancel();
    for (const auto& weak : streams_)
      if (const auto stream = weak.lock()) stream->break_off(make_error(ErrorCode::Cancelled, given_up));
  }

  const net::NodeId& id() const override { return id_; }
  const net::Hello& hello() const override { return hello_; }
  platform::Endpoint endpoint() const override { return endpoint_; }

  void greet(Duration deadline, net::PeerTransport::Connected done, std::shared_ptr<Channel> self) {
    unary(hello_path, wire::HelloRequest(), deadline,
          [this, self = std::move(self), done = std::move(done)](const grpc::Status& status,
                                                                 grpc::ByteBuffer* reply) mutable {
            auto fine = greeted(status, reply);
            if (fine.ok()) return done(std::shared_ptr<net::PeerChannel>(std::move(self)));
            done(std::move(fine).error());
          });
  }

  void call(net::Method method, Bytes request, Duration deadline, net::CallDone done) override {
    if (request.size() > net::max_message_bytes) {
      return shared_->mailbox->put([done = std::move(done)] {
        done(make_error(ErrorCode::InvalidArgument,
                        "a request has at most 4 MiB; more goes through a stream"));
      });
    }
    wire::CallRequest message;
    message.set_method(static_cast<std::uint32_t>(method));
    message.set_body(request.data(), request.size());
    unary(call_path, message, deadline,
          [done = std::move(done)](const grpc::Status& status, grpc::ByteBuffer* reply) {
            if (!status.ok()) return done(to_error(status));
            wire::CallReply message;
            if (!from_buffer(reply, &message))
              return done(make_error(ErrorCode::Corrupt, "the peer's answer can't be read"));
            done(Bytes(message.body().begin(), message.body().end()));
          });
  }

  std::shared_ptr<net::PeerStream> open(net::Method method, Duration patience) override {
    const auto stream = std::make_shared<ClientStream>(shared_, patience);
    std::erase_if(streams_, [](const auto& weak) { return weak.expired(); });
    streams_.push_back(stream);
    stream->begin(stub_, method);
    return std::make_shared<StreamHandle>(stream);
  }

 private:
  template <class Message, class Done>
  void unary(const char* path, const Message& message, Duration deadline, Done done) {
    auto call = std::make_shared<Call>();
    call->context.set_deadline(after(deadline));
    call->context.AddMetadata(hello_key, shared_->own_hello());
    call->request = to_buffer(message);
    calls_.insert(call);
    stub_.UnaryCall(&call->context, path, {}, &call->request, &call->reply,
                    [shared = shared_, life = lifetime_.token(), this, call,
                     done = std::make_shared<Done>(std::move(done))](const grpc::Status& status) {
                      shared->mailbox->put([life, this, call, done, status] {
                        if (life.alive()) calls_.erase(call);
                        // gRPC's thread releases its part later: none of the caller's state may remain in it.
                        Done mine = std::move(*done);
                        // An answer that was here already, when the channel was given up, does not count either.
                        mine(life.alive() ? status : grpc::Status(grpc::StatusCode::CANCELLED, given_up),
                             &call->reply);
                      });
                    });
  }

  Expected<void> greeted(const grpc::Status& status, grpc::ByteBuffer* reply) {
    const auto verdict = verdict_->get();
    if (!status.ok()) {
      if (verdict && !verdict->ok()) return verdict->error();
      Error error = to_error(status);
      if (error.code == ErrorCode::Timeout) error.message = "no connection in time";
      if (error.code == ErrorCode::Unavailable)
        error.message = verdict ? "the peer closed the connection; it may not accept this node"
                                : "the peer can't be reached";
      return std::move(error).with_context(platform::to_text(endpoint_));
    }
    if (!verdict || !verdict->ok()) return make_error(ErrorCode::Denied, "the peer has not proven who it is");
    id_ = **verdict;
    if (id_ == shared_->id) return make_error(ErrorCode::Denied, "this node has dialled itself");
    wire::Hello message;
    if (!from_buffer(reply, &message))
      return make_error(ErrorCode::Corrupt, "the peer's hello can't be read");
    NS_ASSIGN_OR_RETURN(hello_, shared_->check_hello(message.SerializeAsString()));
    return {};
  }

  const std::shared_ptr<Shared> shared_;
  const std::shared_ptr<Verdict> verdict_;
  const platform::Endpoint endpoint_;
  grpc::GenericStub stub_;
  net::NodeId id_{};
  net::Hello hello_;
  Lifetime lifetime_;
  std::unordered_set<std::shared_ptr<Call>> calls_;
  std::vector<std::weak_ptr<ClientStream>> streams_;
};

}  // namespace

void dial(const std::shared_ptr<Shared>& shared, const Provider& provider, const net::Dial& to,
          Duration deadline, net::PeerTransport::Connected done) {
  auto verdict = std::make_shared<Verdict>();
  auto channel =
      std::make_shared<Channel>(shared, make_channel(shared, provider, to, deadline, verdict), verdict, to);
  Channel* const raw = channel.get();
  raw->greet(deadline, std::move(done), std::move(channel));
}

}  // namespace neuroshard::rpc::detail
