#include "core/control/service_module.h"

#include "core/platform/process/own_library.h"

namespace neuroshard::control {

const char* service_build_id() {
  return NS_CONTROL_BUILD_ID;
}

Expected<Service> load_service() {
  return platform::load_own_library<Service>("control.so", service_entry_name, service_build_id(),
                                             "the control service");
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
