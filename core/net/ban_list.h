// Who is not talked to, until when and why. Bounded; the ban that ends first makes room.
#pragma once

#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "core/base/clock.h"
#include "core/net/node_id.h"

namespace neuroshard::net {

struct Ban {
  NodeId id{};
  WallTime until{};
  std::string reason;
};

class BanList {
 public:
  static constexpr std::size_t max_bans = 4096;

  // Threads: any, all members. `clock` outlives the list.
  explicit BanList(const Clock& clock) : clock_(clock) {}

  // A second ban of one node replaces the first.
  void ban(const NodeId& id, Duration length, std::string reason);
  void lift(const NodeId& id);
  // The reason while the ban lasts.
  std::optional<std::string> reason(const NodeId& id) const;
  std::vector<Ban> all() const;

 private:
  const Clock& clock_;
  mutable std::mutex mutex_;
  std::map<NodeId, Ban> bans_;
};

}  // namespace neuroshard::net
