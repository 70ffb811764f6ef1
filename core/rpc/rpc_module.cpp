#include "core/rpc/rpc_module.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <filesystem>

#include "core/platform/paths.h"

namespace neuroshard::rpc {

const char* module_build_id() {
  return NS_PEERS_BUILD_ID;
}

Expected<Module> load_module() {
  NS_ASSIGN_OR_RETURN(const std::string program, platform::executable_path());
  const std::string path =
      (std::filesystem::path(program).parent_path() / "../lib/neuroshard/peers.so").string();
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* reason = dlerror();
    return make_error(ErrorCode::Unavailable,
                      fmt::format("what talks to peers can't be loaded: {}; reinstall NeuroShard",
                                  reason != nullptr ? reason : path));
  }
  const auto entry = reinterpret_cast<ModuleEntry>(dlsym(library, module_entry_name));
  const Module* module = entry != nullptr ? entry(module_build_id()) : nullptr;
  if (module == nullptr) {
    return make_error(ErrorCode::Unavailable,
                      fmt::format("{} belongs to another build of NeuroShard: restart this program", path));
  }
  return *module;
}

}  // namespace neuroshard::rpc
