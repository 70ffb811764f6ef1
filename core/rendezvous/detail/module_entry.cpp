// The one function that lib/neuroshard/mainline.so shows.
#include <string_view>

#include "core/rendezvous/mainline_module.h"

extern "C" __attribute__((visibility("default"))) const neuroshard::rendezvous::MainlineModule*
neuroshard_mainline(const char* build_id) {
  static constexpr neuroshard::rendezvous::MainlineModule module{neuroshard::rendezvous::make_mainline};
  return std::string_view(build_id) == neuroshard::rendezvous::mainline_build_id() ? &module : nullptr;
}
