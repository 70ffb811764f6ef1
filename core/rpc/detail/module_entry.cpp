// The one symbol of peers.so.
#include <cstring>

#include "core/rpc/rpc_module.h"

extern "C" __attribute__((visibility("default"))) const neuroshard::rpc::Module* neuroshard_peers(
    const char* build_id) {
  static constexpr neuroshard::rpc::Module module{neuroshard::rpc::make_grpc_transport};
  return std::strcmp(build_id, neuroshard::rpc::module_build_id()) == 0 ? &module : nullptr;
}
