// Loads the control service: lib/neuroshard/control.so beside the program's folder, opened once, when first
// needed. gRPC brings some forty libraries, which would make every command start later.
#pragma once

#include "core/control/service.h"

namespace neuroshard::control {

struct Service {
  Expected<std::unique_ptr<Server>> (*start_server)(node::Node&, ServerServices, ServerOptions);
  std::unique_ptr<RemoteNode> (*connect)(ConnectOptions);
};

// Unavailable: the library is missing, can't be loaded, or is of another build.  Threads: any.
Expected<Service> load_service();

// Between the library and its loader.
using ServiceEntry = const Service* (*)(const char* build_id);
inline constexpr const char* service_entry_name = "neuroshard_control_service";
const char* service_build_id();

}  // namespace neuroshard::control
