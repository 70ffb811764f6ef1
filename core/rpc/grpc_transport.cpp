#include "core/rpc/grpc_transport.h"

#include <grpcpp/resource_quota.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/security/tls_credentials_options.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>

#include "core/base/check.h"
#include "core/crypto/certificate.h"
#include "core/rpc/detail/answerer.h"
#include "core/rpc/detail/dialer.h"
#include "core/rpc/detail/grpc_process.h"
#include "core/rpc/detail/verifier.h"
#include "core/rpc/detail/wire.h"

namespace neuroshard::rpc {
namespace {

using Acceptor = grpc::experimental::ExternalConnectionAcceptor;

constexpr Duration sweep_period = std::chrono::milliseconds(250);
constexpr Duration sweep_without_calls = std::chrono::seconds(1);
// Between two looks at the open connections.
constexpr Duration busy_tick = std::chrono::milliseconds(100), quiet_tick = std::chrono::milliseconds(500);
constexpr int handshake_ms = 5'000;
constexpr int idle_ms = 120'000;
constexpr int keepalive_ms = 20'000;
constexpr int keepalive_answer_ms = 10'000;
constexpr int calls_per_connection = 64;
constexpr Duration last_calls = std::chrono::milliseconds(200);

net::Refusal refusal_of(platform::ShownOut reason) {
  switch (reason) {
    case platform::ShownOut::TooMany: return net::Refusal::TooManyConnections;
    case platform::ShownOut::TooManyOfAddress: return net::Refusal::TooManyOfAddress;
    case platform::ShownOut::TooOften: return net::Refusal::TooManyOfAddress;
    case platform::ShownOut::TooSlow: return net::Refusal::TooSlow;
    case platform::ShownOut::NotTls: return net::Refusal::NotTls;
    case platform::ShownOut::OldTls: return net::Refusal::OldTls;
    case platform::ShownOut::NotWelcome: return net::Refusal::Banned;
  }
  return net::Refusal::NotTls;
}

class Transport final : public GrpcTransport {
 public:
  Transport(RpcServices services, RpcOptions options)
      : services_(services),
        hello_(options.hello),
        shared_(std::make_shared<detail::Shared>(services, std::move(options))) {}

  ~Transport() override {
    timer_.reset();
    shared_->service = nullptr;
    if (listener_) listener_->stop();
    gate_.reset();
    if (shared_->shaper) shared_->shaper->stop();
    shaping_.reset();
    shared_->stopping = true;
    for (const auto& sweepable : shared_->all()) sweepable->stop();
    if (server_) server_->Shutdown(detail::after(last_calls));
    shared_->close();
    // gRPC's threads may still call the answerer; it ends after the server.
    server_.reset();
  }

  Expected<void> start() {
    detail::prepare_grpc();
    NS_ASSIGN_OR_RETURN(const crypto::CertificatePair pair,
                        crypto::make_certificate(services_.key, services_.clock.wall_now()));
    provider_ = std::make_shared<grpc::experimental::StaticDataCertificateProvider>(
        std::vector<grpc::experimental::IdentityKeyCertPair>{
            {std::string(pair.key.text()), pair.certificate}});
    if (!shared_->options.listen) {
      sweep();
      return {};
    }
    NS_ASSIGN_OR_RETURN(
        listener_, platform::TlsListener::open(*shared_->options.listen, shared_->options.limits.listener,
                                               services_.clock));
    NS_ASSIGN_OR_RETURN(shared_->shaper,
                        platform::TrafficShaper::make(
                            [shared = shared_.get()](const platform::Endpoint& remote, std::uint64_t passed) {
                              return shared->watch.allow(remote, passed, shared->now());
                            },
                            services_.clock));
    build();
    if (!server_) return make_error(ErrorCode::Internal, "gRPC can't start answering peers");
    shared_->set_drain_begins([this] { listener_->tick_soon(); });
    gate_ = make_thread_executor("ns-peers", 1);
    shaping_ = make_thread_executor("ns-shaper", 1);
    const bool posted =
        gate_->post([this] { accept(); }) && shaping_->post([this] { shared_->shaper->serve(); });
    NS_CHECK(posted);
    sweep();
    return {};
  }

  void connect(const net::Dial& to, Duration deadline, Connected done) override {
    detail::dial(shared_, provider_, to, deadline, std::move(done));
  }
  void set_hello(net::Hello hello) override {
    hello_ = std::move(hello);
    shared_->set_hello(hello_);
  }
  const net::Hello& hello() const override { return hello_; }
  platform::Endpoint endpoint() const override {
    return listener_ ? listener_->endpoint() : platform::Endpoint();
  }
  void serve(net::PeerService* service) override { shared_->service = service; }
  std::size_t open_connections() const override { return listener_ ? listener_->open_connections() : 0; }

 private:
  void build() {
    grpc::experimental::TlsServerCredentialsOptions tls(provider_);
    tls.watch_identity_key_cert_pairs();
    // A peer without a certificate gets to the verifier, which refuses it and counts the reason.
    tls.set_cert_request_type(GRPC_SSL_REQUEST_CLIENT_CERTIFICATE_BUT_DONT_VERIFY);
    tls.set_check_call_host(false);
    tls.set_certificate_verifier(detail::make_verifier(shared_, std::nullopt, nullptr));
    const RpcLimits& limits = shared_->options.limits;
    grpc::ResourceQuota quota("peers");
    quota.Resize(limits.grpc_memory);
    answerer_ = std::make_unique<detail::Answerer>(shared_);
    grpc::ServerBuilder builder;
    acceptor_ = builder.experimental().AddExternalConnectionAcceptor(
        grpc::ServerBuilder::experimental_type::ExternalConnectionType::FROM_FD,
        grpc::experimental::TlsServerCredentials(tls));
    builder.RegisterCallbackGenericService(answerer_.get());
    builder.SetResourceQuota(quota);
    // Twice the limit of a message: up to this size we see the message and its sender.
    builder.SetMaxReceiveMessageSize(static_cast<int>(2 * net::max_message_bytes));
    builder.AddChannelArgument(GRPC_ARG_MAX_METADATA_SIZE, detail::max_metadata_bytes);
    builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, calls_per_connection);
    builder.AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, handshake_ms);
    builder.AddChannelArgument(GRPC_ARG_MAX_CONNECTION_IDLE_MS, idle_ms);
    builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, keepalive_ms);
    builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, keepalive_answer_ms);
    builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, keepalive_answer_ms);
    server_ = builder.BuildAndStart();
  }

  void accept() {
    platform::TlsListener::Events events;
    events.take = [this](int descriptor, const platform::Endpoint& remote) { take(descriptor, remote); };
    events.plain_begins = shared_->options.plain_begins;
    events.plain = shared_->options.plain;
    events.welcome = [this](const platform::IpAddress& from) { return shared_->welcome(from); };
    events.refuse_greeting = [this](const platform::IpAddress& from) { return refuse_greeting(from); };
    events.shown_out = [this](platform::ShownOut reason, const platform::IpAddress& from) {
      shared_->count(refusal_of(reason));
      if (reason == platform::ShownOut::NotTls) shared_->fault(from, net::Fault::NotTls);
    };
    events.ended = [this](const platform::OpenConnection& connection) {
      shared_->watch.ended(connection, shared_->now());
      shared_->shaper->end(connection.remote);
    };
    events.tick = [this] {
      shared_->mailbox->retry();
      review();
      if (!shared_->draining()) return shared_->watch.quiet() ? quiet_tick : busy_tick;
      if (listener_->unsent() + shared_->shaper->unsent() == 0) shared_->drained();
      return busy_tick;
    };
    listener_->serve(events);
  }

  std::optional<platform::ShownOut> refuse_greeting(const platform::IpAddress& from) {
    if (!shared_->may_greet(from)) return platform::ShownOut::NotWelcome;
    if (shared_->is_shaped(from) && !shared_->watch.may_greet(from, shared_->now()))
      return platform::ShownOut::TooOften;
    return std::nullopt;
  }

  void take(int descriptor, const platform::Endpoint& remote) {
    Acceptor::NewConnectionParameters connection;
    connection.fd = descriptor;
    if (shared_->is_shaped(remote.ip)) {
      shared_->watch.shaped(remote);
      const auto inner = shared_->shaper->add(descriptor, remote);
      if (!inner.ok()) return listener_->end(remote);  // the listener has a descriptor of it, too
      connection.fd = *inner;
    }
    acceptor_->HandleNewConnection(&connection);
  }

  // On the listener's thread, at each of its ticks: a flood fills memory within a second. So they are frequent while bytes arrive.
  // In an idle network frequent ones take a quarter of the node's processor time.
  void review() {
    const MonotonicTime now = shared_->now();
    const auto& is_short = shared_->options.memory_is_short;
    for (const auto& [remote, reason] :
         shared_->watch.review(listener_->open(), now, is_short && is_short())) {
      listener_->end(remote);
      shared_->count(reason);
    }
  }

  void sweep() {
    shared_->mailbox->retry();
    const MonotonicTime now = shared_->now();
    const auto living = shared_->all();
    for (const auto& sweepable : living) sweepable->check(now);
    if (answerer_) answerer_->sweep(now);
    timer_ = services_.executor.post_after(living.empty() ? sweep_without_calls : sweep_period,
                                           [this] { sweep(); });
  }

  const RpcServices services_;
  net::Hello hello_;
  const std::shared_ptr<detail::Shared> shared_;
  detail::Provider provider_;
  std::unique_ptr<TimerHandle> timer_;
  std::unique_ptr<platform::TlsListener> listener_;
  std::unique_ptr<detail::Answerer> answerer_;
  std::unique_ptr<Acceptor> acceptor_;
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<Executor> gate_, shaping_;
};

}  // namespace

Expected<std::unique_ptr<GrpcTransport>> make_grpc_transport(RpcServices services, RpcOptions options) {
  auto transport = std::make_unique<Transport>(services, std::move(options));
  NS_RETURN_IF_ERROR(transport->start());
  return std::unique_ptr<GrpcTransport>(std::move(transport));
}

}  // namespace neuroshard::rpc
