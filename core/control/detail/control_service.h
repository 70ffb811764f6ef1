// The calls of the control service. Each has a thread of gRPC's (as many as ServerLimits has watchers and
// calls, then calls are refused); they copy values in and out and never touch the core's state.
#pragma once

#include <grpcpp/impl/service_type.h>

#include <functional>
#include <memory>

#include "core/control/detail/cookies.h"
#include "core/control/service.h"

namespace neuroshard::control::detail {

struct ControlCalls {
  std::unique_ptr<grpc::Service> service;
  std::function<void()> stop;  // watchers get what is left and end; waiting calls end with Unavailable
};

// node, logger and cookies outlive the service.
ControlCalls make_control_calls(node::Node& node, Logger& logger, const Cookies& cookies,
                                const ServerOptions& options);

}  // namespace neuroshard::control::detail
