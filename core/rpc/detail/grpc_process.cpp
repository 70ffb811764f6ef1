#include "core/rpc/detail/grpc_process.h"

#include <grpc/support/log.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/security/credentials.h>

#include <cstdlib>
#include <memory>

namespace neuroshard::rpc::detail {
namespace {

// gRPC 1.51 ends its callback threads with the last channel or server, and sometimes aborts while doing so if
// their last callback has just run. One channel that leads nowhere and is never destroyed keeps them.
void keep_callback_threads() {
  struct Call {
    std::shared_ptr<grpc::Channel> channel;
    grpc::ClientContext context;
    grpc::ByteBuffer request, reply;
  };
  auto* const call = new Call;  // for the life of the process
  call->channel = grpc::CreateChannel("", nullptr);
  const grpc::Slice nothing;
  call->request = grpc::ByteBuffer(&nothing, 1);
  grpc::GenericStub(call->channel)
      .UnaryCall(&call->context, "/", {}, &call->request, &call->reply, [](const grpc::Status&) {});
}

}  // namespace

void prepare_grpc() {
  static const bool once = [] {
    // The one remaining cipher needs an RSA certificate, and ours are Ed25519; the ciphers of TLS 1.3 have a
    // setting of their own.
    setenv("GRPC_SSL_CIPHER_SUITES", "ECDHE-RSA-AES256-GCM-SHA384", 1);
    gpr_set_log_function([](gpr_log_func_args*) {});
    keep_callback_threads();
    return true;
  }();
  static_cast<void>(once);
}

gpr_timespec after(Duration limit) {
  return gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC), gpr_time_from_nanos(limit.count(), GPR_TIMESPAN));
}

}  // namespace neuroshard::rpc::detail
