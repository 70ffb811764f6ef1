// The cost of peer channels beside bare gRPC over the same mutual TLS, in one run on the loopback interface:
// round trips of small calls, bulk through a stream in pieces of 256 KiB, handshakes, and raw TCP.
//    measure_peers [seconds]
//    measure_peers idle [peers] [seconds]   what open connections cost that nobody uses
//    measure_peers connections [number]     what hostile connections do to an honest peer
//    measure_peers limit [bytes a second]   how well a bandwidth limit is kept
#include <fmt/format.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/security/tls_certificate_provider.h>
#include <grpcpp/security/tls_credentials_options.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>

#include <sys/resource.h>

#include <algorithm>
#include <cstdlib>
#include <future>

#include "core/crypto/certificate.h"
#include "core/platform/process/heap.h"
#include "core/rpc/detail/grpc_process.h"
#include "core/rpc/grpc_transport.h"
#include "tests/unit/rpc/measure_load.h"
#include "tests/unit/rpc/measure_nodes.h"

using namespace neuroshard;
using namespace neuroshard::testing;

namespace {

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
      explicit Swallow(BareService& of) : service(of) { StartRead(&buffer); }
      void OnReadDone(bool ok) override {
        if (!ok) return Finish(grpc::Status::OK);
        grpc::ByteBuffer message;
        message.Swap(&buffer);
        StartRead(&buffer);
        if (service.copies) service.copy(message);
      }
      void OnDone() override { delete this; }
      BareService& service;
      grpc::ByteBuffer buffer;
    };
    if (context->method() == "/bare/echo") return new Echo;
    return new Swallow(*this);
  }
  void copy(const grpc::ByteBuffer& message) {
    std::vector<grpc::Slice> slices;
    static_cast<void>(message.Dump(&slices).ok());
    std::size_t at = 0;
    for (const grpc::Slice& slice : slices) {
      std::memcpy(place.data() + at, slice.begin(), slice.size());
      at += slice.size();
    }
  }

 public:
  bool copies = false;  // each message of a stream to where it belongs, as a tensor's would be

 private:
  Bytes place = Bytes(net::chunk_bytes);
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
  // Each call is made where the answer of the one before arrived, as protocols do.
  std::vector<double> round_trips(double seconds) {
    struct Call {
      grpc::ClientContext context;
      grpc::ByteBuffer request, reply;
    };
    const SystemClock clock;
    const MonotonicTime end = clock.monotonic_now() + Duration(static_cast<std::int64_t>(seconds * 1e9));
    std::vector<double> times;
    std::promise<void> done;
    std::function<void()> next = [&] {
      const MonotonicTime began = clock.monotonic_now();
      if (began >= end) return done.set_value();
      const auto call = std::make_shared<Call>();
      const std::string bytes(small, 'x');
      grpc::Slice slice(bytes);
      call->request = grpc::ByteBuffer(&slice, 1);
      stub->UnaryCall(&call->context, "/bare/echo", {}, &call->request, &call->reply,
                      [&, began, call](const grpc::Status&) {
                        times.push_back(to_seconds(clock.monotonic_now() - began) * 1e6);
                        next();
                      });
    };
    next();
    done.get_future().wait();
    std::sort(times.begin(), times.end());
    return times;
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

// Of both ends, in seconds: unlike the time that passes, what else runs changes it little.
double processor_seconds() {
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  const auto seconds = [](const timeval& time) { return double(time.tv_sec) + double(time.tv_usec) / 1e6; };
  return seconds(used.ru_utime) + seconds(used.ru_stime);
}

}  // namespace

int main(int argc, char** argv) {
  platform::keep_heap_small();  // as a node does; it holds for both sides
  const std::string mode = argc > 1 ? argv[1] : "";
  const auto number = [&](int place, int otherwise) {
    return argc > place ? std::atoi(argv[place]) : otherwise;
  };
  if (mode == "idle") return measure_idle(number(2, 200), number(3, 30));
  if (mode == "connections") return measure_connections(number(2, 10'000));
  if (mode == "limit") return measure_limit(number(2, 4 << 20));
  const double seconds = argc > 1 ? std::atof(argv[1]) : 3;
  rpc::detail::prepare_grpc();
  Bare bare;
  Nodes nodes;
  // As members are: of a stranger, more than 10 MiB may not wait to be read.
  nodes.ranks.know({crypto::node_id(nodes.key_a.public_key())});
  for (int i = 0; i < 100; ++i) {
    bare.echo();
    nodes.echo();
  }
  for (int round = 0; round < 3; ++round) {  // alternating, so that what else runs hits both
    double before = processor_seconds();
    const auto plain = bare.round_trips(seconds);
    const double plain_used = (processor_seconds() - before) / double(plain.size());
    before = processor_seconds();
    const auto ours = nodes.round_trips(seconds);
    const double ours_used = (processor_seconds() - before) / double(ours.size());
    fmt::print(
        "round trip of 64 bytes: bare gRPC p50 {:.0f} us p99 {:.0f}; peer channel p50 {:.0f} us p99 {:.0f}; "
        "{:.2f} x; processor time {:.0f} and {:.0f} us a call, {:.2f} x\n",
        at(plain, 0.5), at(plain, 0.99), at(ours, 0.5), at(ours, 0.99), at(ours, 0.5) / at(plain, 0.5),
        plain_used * 1e6, ours_used * 1e6, ours_used / plain_used);
    constexpr std::size_t pieces = 8192;  // 2 GiB
    const double bytes = double(pieces * net::chunk_bytes);
    for (const bool copies : {false, true}) {
      bare.service.copies = copies;
      Nodes::run(*nodes.b_executor, [&] { nodes.sink.copies = copies; });
      before = processor_seconds();
      const double plain_bulk = bytes / bare.bulk(pieces);
      const double plain_bulk_used = processor_seconds() - before;
      before = processor_seconds();
      const double ours_bulk = bytes / nodes.bulk(pieces);
      const double ours_bulk_used = processor_seconds() - before;
      fmt::print(
          "bulk{}: bare gRPC {:.2f} GB/s; peer channel {:.2f} GB/s; {:.0f} %; processor time {:.2f} and "
          "{:.2f} s a GB, {:.2f} x\n",
          copies ? ", each piece copied to its place" : ", received and not looked at", plain_bulk / 1e9,
          ours_bulk / 1e9, 100 * ours_bulk / plain_bulk, plain_bulk_used * 1e9 / bytes,
          ours_bulk_used * 1e9 / bytes, ours_bulk_used / plain_bulk_used);
    }
    fmt::print("raw TCP {:.2f} GB/s\n", bytes / tcp_seconds(pieces) / 1e9);
  }
  const auto handshakes = microseconds(seconds, [&] {
    auto channel = nodes.connect();
    Nodes::run(*nodes.a_executor, [&] { channel.reset(); });
  });
  fmt::print("connect, TLS and hello: p50 {:.1f} ms p99 {:.1f}\n", at(handshakes, 0.5) / 1e3,
             at(handshakes, 0.99) / 1e3);
  return 0;
}
