#include "core/platform/power/sleep_watch.h"

namespace neuroshard::platform {

std::string system_bus_address(const Environment& environment) {
  std::string address = environment("DBUS_SYSTEM_BUS_ADDRESS");
  return address.empty() ? "unix:path=/run/dbus/system_bus_socket" : address;
}

}  // namespace neuroshard::platform
