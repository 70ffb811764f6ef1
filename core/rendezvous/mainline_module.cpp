#include "core/rendezvous/mainline_module.h"

#include "core/platform/process/own_library.h"

namespace neuroshard::rendezvous {

const char* mainline_build_id() {
  return NS_MAINLINE_BUILD_ID;
}

Expected<MainlineModule> load_mainline() {
  return platform::load_own_library<MainlineModule>("mainline.so", mainline_entry_name, mainline_build_id(),
                                                    "what reaches the BitTorrent DHT");
}

}  // namespace neuroshard::rendezvous
