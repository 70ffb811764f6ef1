#include "core/network_module/network_module.h"

#include "core/platform/process/own_library.h"

namespace neuroshard::network_module {

const char* network_module_build_id() {
  return NS_NETWORK_BUILD_ID;
}

Expected<NetworkModule> load_network_module() {
  return platform::load_own_library<NetworkModule>("network.so", network_module_entry_name,
                                                   network_module_build_id(), "the network module");
}

}  // namespace neuroshard::network_module
