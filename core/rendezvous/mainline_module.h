// Loads the mainline DHT: lib/neuroshard/mainline.so beside the program's folder, opened once, when first
// needed.
#pragma once

#include "core/rendezvous/mainline.h"

namespace neuroshard::rendezvous {

struct MainlineModule {
  Expected<std::unique_ptr<Rendezvous>> (*make)(Executor&, MainlineOptions);
};

// Unavailable: the library is missing, can't be loaded, or is of another build.  Threads: any.
Expected<MainlineModule> load_mainline();

// Between the library and its loader.
using MainlineEntry = const MainlineModule* (*)(const char* build_id);
inline constexpr const char* mainline_entry_name = "neuroshard_mainline";
const char* mainline_build_id();

}  // namespace neuroshard::rendezvous
