#include "core/rendezvous/mainline_module.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <filesystem>

#include "core/platform/paths.h"

namespace neuroshard::rendezvous {

const char* mainline_build_id() {
  return NS_MAINLINE_BUILD_ID;
}

Expected<MainlineModule> load_mainline() {
  NS_ASSIGN_OR_RETURN(const std::string program, platform::executable_path());
  const std::string path =
      (std::filesystem::path(program).parent_path() / "../lib/neuroshard/mainline.so").string();
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* reason = dlerror();
    return make_error(ErrorCode::Unavailable,
                      fmt::format("what reaches the BitTorrent DHT can't be loaded: {}; reinstall NeuroShard",
                                  reason != nullptr ? reason : path));
  }
  const auto entry = reinterpret_cast<MainlineEntry>(dlsym(library, mainline_entry_name));
  const MainlineModule* module = entry != nullptr ? entry(mainline_build_id()) : nullptr;
  if (module == nullptr) {
    return make_error(ErrorCode::Unavailable,
                      fmt::format("{} belongs to another build of NeuroShard: restart this program", path));
  }
  return *module;
}

}  // namespace neuroshard::rendezvous
