#include "core/control/service_module.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>

#include "core/platform/paths.h"

namespace neuroshard::control {

const char* service_build_id() {
  return NS_CONTROL_BUILD_ID;
}

Expected<Service> load_service() {
  NS_ASSIGN_OR_RETURN(const std::string program, platform::executable_path());
  const std::string path =
      (std::filesystem::path(program).parent_path() / "../lib/neuroshard/control.so").string();
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* reason = dlerror();
    return make_error(ErrorCode::Unavailable,
                      fmt::format("the control service can't be loaded: {}; reinstall NeuroShard",
                                  reason != nullptr ? reason : path));
  }
  const auto entry = reinterpret_cast<ServiceEntry>(dlsym(library, service_entry_name));
  const Service* service = entry != nullptr ? entry(service_build_id()) : nullptr;
  if (service == nullptr) {
    return make_error(ErrorCode::Unavailable,
                      fmt::format("{} belongs to another build of NeuroShard: restart this program", path));
  }
  return *service;
}

std::string_view to_string(LinkState state) {
  switch (state) {
    case LinkState::Connecting: return "connecting";
    case LinkState::Connected: return "connected";
    case LinkState::Lost: return "lost";
    case LinkState::Refused: return "refused";
  }
  return "unknown";
}

}  // namespace neuroshard::control
