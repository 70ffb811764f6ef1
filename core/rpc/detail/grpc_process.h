// What gRPC takes from the process and not from its options.
#pragma once

#include <grpc/support/time.h>

#include "core/base/clock.h"

namespace neuroshard::rpc::detail {

// Silences gRPC's own log and leaves it no cipher of TLS 1.2, so that only 1.3 is spoken. Before the first
// use of gRPC in this process; later calls do nothing.  Threads: any.
void prepare_grpc();

// Deadlines of gRPC are points of time; it keeps its own clock for them.
gpr_timespec after(Duration limit);

}  // namespace neuroshard::rpc::detail
