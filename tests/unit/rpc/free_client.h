// A client of the transport that keeps to none of our rules but those a test leaves in place.
#pragma once

#include <grpcpp/create_channel.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/security/tls_certificate_provider.h>
#include <grpcpp/security/tls_credentials_options.h>

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/crypto/certificate.h"
#include "core/rpc/detail/grpc_process.h"
#include "core/rpc/detail/wire.h"
#include "tests/unit/rpc/peer_pair.h"

namespace neuroshard::testing {

namespace wire = neuroshard::rpc::detail;

struct Pem {
  std::string certificate, key;
};

inline Pem pem_of(const crypto::KeyPair& key) {
  auto pair = crypto::make_certificate(key, SystemClock().wall_now()).value();
  return {pair.certificate, std::string(pair.key.text())};
}

struct Client {
  // small_window: an answer has 64 KiB of room until it is read.
  Client(const platform::Endpoint& to, const std::optional<Pem>& shown, bool small_window = false) {
    wire::prepare_grpc();
    grpc::experimental::TlsChannelCredentialsOptions tls;
    if (shown) {
      tls.set_certificate_provider(std::make_shared<grpc::experimental::StaticDataCertificateProvider>(
          std::vector<grpc::experimental::IdentityKeyCertPair>{{shown->key, shown->certificate}}));
      tls.watch_identity_key_cert_pairs();
    }
    tls.set_verify_server_certs(false);
    tls.set_check_call_host(false);
    tls.set_certificate_verifier(std::make_shared<grpc::experimental::NoOpCertificateVerifier>());
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
    arguments.SetMaxSendMessageSize(-1);
    if (small_window) arguments.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, 0);
    stub = std::make_unique<grpc::GenericStub>(
        grpc::CreateCustomChannel(wire::target_of(to), grpc::experimental::TlsCredentials(tls), arguments));
  }

  grpc::Status call(GrpcPair& pair, const char* path, const std::optional<std::string>& hello,
                    std::size_t size, std::uint32_t called = 60'000) {
    grpc::ClientContext context;
    context.set_deadline(wire::after(std::chrono::seconds(10)));
    if (hello) context.AddMetadata(wire::hello_key, *hello);
    peer::v1::CallRequest message;
    message.set_method(called);
    message.set_body(std::string(size, 'x'));
    grpc::ByteBuffer request = wire::to_buffer(message), reply;
    std::atomic<bool> done{false};
    grpc::Status result;
    stub->UnaryCall(&context, path, {}, &request, &reply, [&](const grpc::Status& status) {
      result = status;
      done = true;
    });
    pair.run_until([&] { return done.load(); });
    return result;
  }

  std::unique_ptr<grpc::GenericStub> stub;
};

inline std::string good_hello() {
  return wire::encode_hello(hello_of_network(7));
}

// A call whose request never comes.
struct SilentCall final : grpc::ClientBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer> {
  void begin(Client& client) {
    context.AddMetadata(wire::hello_key, good_hello());
    client.stub->PrepareBidiStreamingCall(&context, wire::call_path, {}, this);
    StartCall();
  }
  void OnDone(const grpc::Status& status) override {
    result = status;
    done = true;
  }
  grpc::ClientContext context;
  grpc::Status result;
  std::atomic<bool> done{false};
};

}  // namespace neuroshard::testing
