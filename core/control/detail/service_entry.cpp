// The one symbol of control.so.
#include <cstring>

#include "core/control/service_module.h"

extern "C" __attribute__((visibility("default"))) const neuroshard::control::Service*
neuroshard_control_service(const char* build_id) {
  static constexpr neuroshard::control::Service service{neuroshard::control::start_server,
                                                        neuroshard::control::connect};
  return std::strcmp(build_id, neuroshard::control::service_build_id()) == 0 ? &service : nullptr;
}
