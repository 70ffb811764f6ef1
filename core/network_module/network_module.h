// Loads the network module: lib/neuroshard/network.so beside the program's folder. The module is the only
// file that links gRPC and libtorrent, so that a command that needs neither starts at once: the two bring
// some sixty libraries.
//
// A program loads the module once, when it first needs one of the four functions; it stays loaded until the
// process ends. The module is C++ on both sides, so both compare a build id, which is made of the headers
// that they share, before they use each other's types. Why the module is one file:
// docs/decisions/008-one-network-module.md.
#pragma once

#include <memory>

#include "core/base/expected.h"

namespace neuroshard {

class Executor;

namespace node {
class Node;
}
namespace control {
class Server;
class RemoteNode;
struct ServerServices;
struct ServerOptions;
struct ConnectOptions;
}  // namespace control
namespace rpc {
class GrpcTransport;
struct RpcServices;
struct RpcOptions;
}  // namespace rpc
namespace rendezvous {
class Rendezvous;
struct MainlineOptions;
}  // namespace rendezvous

namespace network_module {

// Each function has the contract of its header; include that header to call it.
struct NetworkModule {
  // core/control/service.h
  Expected<std::unique_ptr<control::Server>> (*start_server)(node::Node&, control::ServerServices,
                                                             control::ServerOptions);
  std::unique_ptr<control::RemoteNode> (*connect)(control::ConnectOptions);
  // core/rpc/grpc_transport.h
  Expected<std::unique_ptr<rpc::GrpcTransport>> (*make_transport)(rpc::RpcServices, rpc::RpcOptions);
  // core/rendezvous/mainline.h
  Expected<std::unique_ptr<rendezvous::Rendezvous>> (*make_mainline)(Executor&, rendezvous::MainlineOptions);
};

// Errors: Unavailable if the module is missing, can't be loaded, or belongs to another build.  Threads: any.
Expected<NetworkModule> load_network_module();

// Between the module and its loader. The entry returns null for a build id that is not its own.
using NetworkModuleEntry = const NetworkModule* (*)(const char* build_id);
inline constexpr const char* network_module_entry_name = "neuroshard_network";
const char* network_module_build_id();

}  // namespace network_module
}  // namespace neuroshard
