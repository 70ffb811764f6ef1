// Loads the peer transport: lib/neuroshard/peers.so beside the program's folder, opened once, when first
// needed. gRPC brings some forty libraries, which would make every command start later.
#pragma once

#include "core/rpc/grpc_transport.h"

namespace neuroshard::rpc {

struct Module {
  Expected<std::unique_ptr<GrpcTransport>> (*make_transport)(RpcServices, RpcOptions);
};

// Unavailable: the library is missing, can't be loaded, or is of another build.  Threads: any.
Expected<Module> load_module();

// Between the library and its loader.
using ModuleEntry = const Module* (*)(const char* build_id);
inline constexpr const char* module_entry_name = "neuroshard_peers";
const char* module_build_id();

}  // namespace neuroshard::rpc
