#include "core/runtime/connection_room.h"

#include <algorithm>

#include "core/nat/relay_server.h"
#include "core/platform/socket/tls_listener.h"

namespace neuroshard::runtime {
namespace {

// For files, databases, modules, the control service and connections that this node makes.
constexpr std::size_t reserve = 512;
// The listener keeps one beside that of the transport.
constexpr std::size_t per_peer = 2;
constexpr std::size_t least = 4;  // of each kind

}  // namespace

ConnectionRoom connection_room(std::size_t open_files, bool relays) {
  const platform::TlsListenerLimits listener{};
  const nat::RelayLimits relay{};
  ConnectionRoom room{listener.connections, listener.waiting, relay.connections, false};
  const std::size_t wanted = per_peer * room.peers + room.waiting + (relays ? room.relayed : 0);
  const std::size_t left = open_files - std::min(reserve, open_files / 2);
  if (left >= wanted) return room;
  for (std::size_t* const bound : {&room.peers, &room.waiting, &room.relayed})
    *bound = std::max(least, *bound * left / wanted);
  room.lowered = true;
  return room;
}

}  // namespace neuroshard::runtime
