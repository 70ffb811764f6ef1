// Somebody to begin with: a tracker or a node, by address or by name. What it is, its hello says.
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
  platform::Endpoint endpoint;    // of one without a name
  std::optional<net::NodeId> id;  // who has to answer there; nothing: whoever does
  std::string name = {};          // "tracker.example.org:8765"; looked up before every try: addresses change
};

// Looks names up without making the caller wait.
class NameResolver {
 public:
  using Found = std::function<void(Expected<std::vector<platform::Endpoint>>)>;
  virtual ~NameResolver() = default;
  // `found` is called at most once, later, on the executor of who asks; never once the resolver is destroyed.
  virtual void look_up(const std::string& name, Found found) = 0;
};

}  // namespace neuroshard::swarm
