#include "core/rpc/detail/grpc_process.h"

#include <grpc/support/log.h>

#include <cstdlib>

namespace neuroshard::rpc::detail {

void prepare_grpc() {
  static const bool once = [] {
    // The one cipher that is left needs an RSA certificate, and ours are Ed25519; those of TLS 1.3 are chosen
    // apart.
    setenv("GRPC_SSL_CIPHER_SUITES", "ECDHE-RSA-AES256-GCM-SHA384", 1);
    gpr_set_log_function([](gpr_log_func_args*) {});
    return true;
  }();
  static_cast<void>(once);
}

gpr_timespec after(Duration limit) {
  return gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC), gpr_time_from_nanos(limit.count(), GPR_TIMESPAN));
}

}  // namespace neuroshard::rpc::detail
