// What peer channels cost beside bare gRPC over the same mutual TLS, in one run on the loopback interface:
// round trips of small calls, bulk through a stream in pieces of 256 KiB, handshakes.    measure_peers
// [seconds]
#include <fmt/format.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/security/tls_certificate_provider.h>
#include <grpcpp/security/tls_credentials_options.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>

#include <algorithm>
#include <cstdlib>
#include <future>

#include "core/crypto/certificate.h"
#include "core/rpc/detail/grpc_process.h"
#include "core/rpc/grpc_transport.h"

using namespace neuroshard;

namespace {

constexpr auto method = static_cast<net::Method>(60'000);
constexpr std::size_t small = 64;

crypto::KeyPair key_of(std::uint8_t number) {
  Hash256 seed{};
  seed.fill(number);
  return crypto::KeyPair::from_seed(seed);
}

struct Sink final : net::PeerService {
  void on_call(const net::Caller&, net::Method, Bytes request, net::Respond respond) override {
    respond(std::move(request));
  }
  void on_stream(const net::Caller&, net::Method, std::shared_ptr<net::PeerStream> stream) override {
    swallow(std::move(stream));
  }
  static void swallow(std::shared_ptr<net::PeerStream> stream) {
    auto* const raw = stream.get();
    raw->read([stream = std::move(stream)](Expected<std::optional<Bytes>> piece) mutable {
      if (!piece.ok()) return;
      if (!*piece) return stream->finish();
      swallow(std::move(stream));
    });
  }
};

// Bare gRPC: the same shapes of call, nothing checked, nothing copied between threads.
class BareService final : public grpc::CallbackGenericService {
  grpc::ServerGenericBidiReactor* CreateReactor(grpc::GenericCallbackServerContext* context) override {
    struct Echo final : grpc::ServerGenericBidiReactor {
      Echo() { StartRead(&buffer); }
      void OnReadDone(bool ok) override {
        if (!ok) return Finish(grpc::Status::CANCELLED);
        StartWriteAndFinish(&buffer, {}, grpc::Status::OK);
      }
      void OnDone() override { delete this; }
      grpc::ByteBuffer buffer;
    };
    struct Swallow final : grpc::ServerGenericBidiReactor {
      Swallow() { StartRead(&buffer); }
      void OnReadDone(bool ok) override {
        if (!ok) return Finish(grpc::Status::OK);
        StartRead(&buffer);
      }
      void OnDone() override { delete this; }
      grpc::ByteBuffer buffer;
    };
    if (context->method() == "/bare/echo") return new Echo;
    return new Swallow;
  }
};

struct Bare {
  Bare() {
    const auto pair = crypto::make_certificate(key_of(3), SystemClock().wall_now()).value();
    provider = std::make_shared<grpc::experimental::StaticDataCertificateProvider>(
        std::vector<grpc::experimental::IdentityKeyCertPair>{
            {std::string(pair.key.text()), pair.certificate}});
    grpc::experimental::TlsServerCredentialsOptions tls(provider);
    tls.watch_identity_key_cert_pairs();
    tls.set_cert_request_type(GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_BUT_DONT_VERIFY);
    tls.set_certificate_verifier(std::make_shared<grpc::experimental::NoOpCertificateVerifier>());
    grpc::ServerBuilder builder;
    int port = 0;
    builder.AddListeningPort("127.0.0.1:0", grpc::experimental::TlsServerCredentials(tls), &port);
    builder.RegisterCallbackGenericService(&service);
    server = builder.BuildAndStart();
    grpc::experimental::TlsChannelCredentialsOptions client;
    client.set_certificate_provider(provider);
    client.watch_identity_key_cert_pairs();
    client.set_verify_server_certs(false);
    client.set_check_call_host(false);
    client.set_certificate_verifier(std::make_shared<grpc::experimental::NoOpCertificateVerifier>());
    channel = grpc::CreateChannel(fmt::format("ipv4:127.0.0.1:{}", port),
                                  grpc::experimental::TlsCredentials(client));
    stub = std::make_unique<grpc::GenericStub>(channel);
  }
  void echo() {
    struct Call {
      grpc::ClientContext context;
      grpc::ByteBuffer request, reply;
    } call;
    const std::string bytes(small, 'x');
    grpc::Slice slice(bytes);
    call.request = grpc::ByteBuffer(&slice, 1);
    std::promise<void> done;
    stub->UnaryCall(&call.context, "/bare/echo", {}, &call.request, &call.reply,
                    [&](const grpc::Status&) { done.set_value(); });
    done.get_future().wait();
  }
  double bulk(std::size_t pieces) {
    struct Writer final : grpc::ClientBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer> {
      explicit Writer(std::size_t count) : left(count), data(net::chunk_bytes, 'x') {}
      void next() {
        if (left-- == 0) return StartWritesDone();
        grpc::Slice slice(data);  // copied, as a message of a protocol is
        buffer = grpc::ByteBuffer(&slice, 1);
        StartWrite(&buffer);
      }
      void OnWriteDone(bool ok) override {
        if (ok) next();
      }
      void OnDone(const grpc::Status&) override { done.set_value(); }
      std::size_t left;
      std::string data;
      grpc::ByteBuffer buffer;
      std::promise<void> done;
    } writer(pieces);
    grpc::ClientContext context;
    const SystemClock clock;
    const MonotonicTime began = clock.monotonic_now();
    stub->PrepareBidiStreamingCall(&context, "/bare/swallow", {}, &writer);
    writer.next();
    writer.StartCall();
    writer.done.get_future().wait();
    return to_seconds(clock.monotonic_now() - began);
  }
  std::shared_ptr<grpc::experimental::StaticDataCertificateProvider> provider;
  BareService service;
  std::unique_ptr<grpc::Server> server;
  std::shared_ptr<grpc::Channel> channel;
  std::unique_ptr<grpc::GenericStub> stub;
};

// Two nodes, each with an executor of its own.
struct Nodes {
  Nodes() {
    run(*b_executor, [&] {
      rpc::RpcOptions options;
      options.listen = platform::Endpoint{platform::IpAddress::v4(127, 0, 0, 1), 0};
      options.limits.listener.per_address = 0;
      b = rpc::make_grpc_transport({key_b, *b_executor, clock, bans, refusals}, options).value();
      b->serve(&sink);
    });
    run(*a_executor, [&] {
      a = rpc::make_grpc_transport({key_a, *a_executor, clock, bans, refusals}, {}).value();
    });
    channel = connect();
  }
  ~Nodes() {
    run(*a_executor, [&] {
      channel.reset();
      a.reset();
    });
    run(*b_executor, [&] { b.reset(); });
  }
  static void run(Executor& executor, const std::function<void()>& task) {
    std::promise<void> done;
    static_cast<void>(executor.post([&] {
      task();
      done.set_value();
    }));
    done.get_future().wait();
  }
  std::shared_ptr<net::PeerChannel> connect() {
    std::promise<std::shared_ptr<net::PeerChannel>> result;
    run(*a_executor, [&] {
      a->connect({b->endpoint(), crypto::node_id(key_b.public_key())}, net::connect_deadline,
                 [&](auto connected) { result.set_value(connected.value()); });
    });
    return result.get_future().get();
  }
  void echo() {
    std::promise<void> done;
    static_cast<void>(a_executor->post([&] {
      channel->call(method, Bytes(small), std::chrono::seconds(10),
                    [&](const Expected<Bytes>&) { done.set_value(); });
    }));
    done.get_future().wait();
  }
  double bulk(std::size_t pieces) {
    std::promise<void> done;
    const MonotonicTime began = clock.monotonic_now();
    std::shared_ptr<net::PeerStream> stream;
    std::function<void()> next = [&, left = pieces]() mutable {
      if (left-- == 0) {
        stream->finish();
        return stream->read([&](const Expected<std::optional<Bytes>>&) { done.set_value(); });
      }
      stream->write(Bytes(net::chunk_bytes, 'x'), [&](const Expected<void>& written) {
        if (written.ok()) next();
      });
    };
    run(*a_executor, [&] {
      stream = channel->open(method, net::stream_patience);
      next();
    });
    done.get_future().wait();
    run(*a_executor, [&] { stream.reset(); });
    return to_seconds(clock.monotonic_now() - began);
  }

  SystemClock clock;
  net::BanList bans{clock};
  net::RefusalCounts refusals;
  Sink sink;
  crypto::KeyPair key_a = key_of(1), key_b = key_of(2);
  std::unique_ptr<Executor> a_executor = make_thread_executor("a", 1024);
  std::unique_ptr<Executor> b_executor = make_thread_executor("b", 1024);
  std::unique_ptr<rpc::GrpcTransport> a, b;
  std::shared_ptr<net::PeerChannel> channel;
};

template <class Call>
std::vector<double> microseconds(double seconds, const Call& call) {
  const SystemClock clock;
  std::vector<double> times;
  const MonotonicTime end = clock.monotonic_now() + Duration(static_cast<std::int64_t>(seconds * 1e9));
  while (clock.monotonic_now() < end) {
    const MonotonicTime began = clock.monotonic_now();
    call();
    times.push_back(to_seconds(clock.monotonic_now() - began) * 1e6);
  }
  std::sort(times.begin(), times.end());
  return times;
}

double at(const std::vector<double>& sorted, double share) {
  return sorted[static_cast<std::size_t>(share * double(sorted.size() - 1))];
}

}  // namespace

int main(int argc, char** argv) {
  const double seconds = argc > 1 ? std::atof(argv[1]) : 3;
  rpc::detail::prepare_grpc();
  Bare bare;
  Nodes nodes;
  for (int i = 0; i < 100; ++i) {
    bare.echo();
    nodes.echo();
  }
  for (int round = 0; round < 3; ++round) {  // alternating, so that what else runs hits both
    const auto plain = microseconds(seconds, [&] { bare.echo(); });
    const auto ours = microseconds(seconds, [&] { nodes.echo(); });
    fmt::print(
        "round trip of 64 bytes: bare gRPC p50 {:.0f} us p99 {:.0f}; peer channel p50 {:.0f} us p99 {:.0f}; "
        "{:.2f} x\n",
        at(plain, 0.5), at(plain, 0.99), at(ours, 0.5), at(ours, 0.99), at(ours, 0.5) / at(plain, 0.5));
    constexpr std::size_t pieces = 2048;  // 512 MiB
    const double bytes = double(pieces * net::chunk_bytes);
    const double plain_bulk = bytes / bare.bulk(pieces), ours_bulk = bytes / nodes.bulk(pieces);
    fmt::print("bulk: bare gRPC {:.2f} GB/s; peer channel {:.2f} GB/s; {:.0f} %\n", plain_bulk / 1e9,
               ours_bulk / 1e9, 100 * ours_bulk / plain_bulk);
  }
  const auto handshakes = microseconds(seconds, [&] {
    auto channel = nodes.connect();
    Nodes::run(*nodes.a_executor, [&] { channel.reset(); });
  });
  fmt::print("connect, TLS and hello: p50 {:.1f} ms p99 {:.1f}\n", at(handshakes, 0.5) / 1e3,
             at(handshakes, 0.99) / 1e3);
  return 0;
}
