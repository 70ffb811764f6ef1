#include "core/rpc/rpc_module.h"

#include "core/platform/process/own_library.h"

namespace neuroshard::rpc {

const char* module_build_id() {
  return NS_PEERS_BUILD_ID;
}

Expected<Module> load_module() {
  return platform::load_own_library<Module>("peers.so", module_entry_name, module_build_id(),
                                            "what talks to peers");
}

}  // namespace neuroshard::rpc
