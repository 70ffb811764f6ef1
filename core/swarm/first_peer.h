// A first peer: a tracker or a node, by address or by name. Its hello says which of the two it is.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/base/expected.h"
#include "core/net/node_id.h"
#include "core/platform/socket/ip_address.h"

namespace neuroshard::swarm {

struct FirstPeer {
  platform::Endpoint endpoint;    // if it has no name
  std::optional<net::NodeId> id;  // must answer there; nothing: any node may
  std::string name = {};  // "tracker.example.org:8765"; looked up before each try, because addresses change
};

// Looks names up without blocking the caller.
class NameResolver {
 public:
  using Found = std::function<void(Expected<std::vector<platform::Endpoint>>)>;
  virtual ~NameResolver() = default;
  // `found` is called at most once, later, on the caller's executor; never after the resolver is destroyed.
  virtual void look_up(const std::string& name, Found found) = 0;
};

}  // namespace neuroshard::swarm
