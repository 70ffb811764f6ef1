// A client's connection to one core, with what every call of it must carry.
#pragma once

#include <grpcpp/grpcpp.h>

#include <memory>

#include <proto/control.grpc.pb.h>
#include "core/control/control_file.h"
#include "core/control/service.h"

namespace neuroshard::control::detail {

struct RemoteLink {
  ControlFile file;
  Version speaks;
  std::unique_ptr<v1::Control::Stub> stub;

  void sign(grpc::ClientContext* context) const;
};

// Does not connect yet: the first call does. A connection whose core is silent for `quiet`, and then gives no
// sign for as long, ends.
std::shared_ptr<const RemoteLink> open_link(ControlFile file, Version speaks, Duration quiet);

// An error for people from gRPC's status of a failed call.
Error connect_error(const grpc::Status& status, const ControlFile& file);

// Deadlines of gRPC are points of time; it keeps its own clock for them.
gpr_timespec after(std::chrono::seconds limit);

}  // namespace neuroshard::control::detail
