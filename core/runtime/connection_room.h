// How many connections other nodes may have open here, so that files, databases and own connections always
// find a descriptor.
#pragma once

#include <cstddef>

namespace neuroshard::runtime {

struct ConnectionRoom {
  std::size_t peers = 0, waiting = 0;  // of platform::TlsListenerLimits
  std::size_t relayed = 0;             // nat::RelayLimits::connections
  bool lowered = false;                // below the bounds of these structs
};

// open_files: the limit of the process (platform::open_file_limit()).  Pure.
ConnectionRoom connection_room(std::size_t open_files, bool relays);

}  // namespace neuroshard::runtime
