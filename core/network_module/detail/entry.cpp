// The only symbol that network.so exports.
#include <string_view>

#include "core/control/service.h"
#include "core/network_module/network_module.h"
#include "core/rendezvous/mainline.h"
#include "core/rpc/grpc_transport.h"

extern "C" __attribute__((visibility("default"))) const neuroshard::network_module::NetworkModule*
neuroshard_network(const char* build_id) {
  using namespace neuroshard;  // NOLINT
  static constexpr network_module::NetworkModule module{control::start_server, control::connect,
                                                        rpc::make_grpc_transport, rendezvous::make_mainline};
  return std::string_view(build_id) == network_module::network_module_build_id() ? &module : nullptr;
}
