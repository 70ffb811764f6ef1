// Settings that gRPC takes from the process, not from its options.
#pragma once

#include <grpc/support/time.h>

#include "core/base/clock.h"

namespace neuroshard::rpc::detail {

// Silences gRPC's own log and disables the ciphers of TLS 1.2, so that only 1.3 is used. Call it before the
// first use of gRPC in this process; later calls do nothing.  Threads: any.
void prepare_grpc();

// A deadline as gRPC takes it: a point in time of gRPC's own clock.
gpr_timespec after(Duration limit);

}  // namespace neuroshard::rpc::detail
