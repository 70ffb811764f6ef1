// Bans of nodes, each with its end and reason. The list is bounded: the ban that ends first makes room. Bytes
// of a file are untrusted input.
#pragma once

#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "core/base/bytes.h"
#include "core/base/clock.h"
#include "core/base/expected.h"
#include "core/net/node_id.h"

namespace neuroshard::net {

struct Ban {
  NodeId id{};
  WallTime until{};
  std::string reason;
  std::uint32_t times = 1;  // in a row
};

class BanList {
 public:
  static constexpr std::size_t max_bans = 4096;
  static constexpr std::size_t max_reason_bytes = 120;
  // How long an ended ban is remembered: the next one is longer.
  static constexpr auto remembered = std::chrono::hours(24);

  // Threads: any, all members. `clock` outlives the list.
  explicit BanList(const Clock& clock) : clock_(clock) {}

  // A second ban of one node replaces the first.
  void ban(const NodeId& id, Duration length, std::string reason);
  // Like ban(), but twice as long for each ban that follows within a day.
  void ban_again(const NodeId& id, Duration first, Duration longest, std::string reason);
  void lift(const NodeId& id);
  // The reason, while the ban lasts.
  std::optional<std::string> reason(const NodeId& id) const;
  std::vector<Ban> all() const;

  // Changes with each ban and each lift().
  std::uint64_t changes() const;
  // All bans, including those that ended and are remembered. Restoring adds to the list.
  // Corrupt: nothing was added.
  Bytes encode() const;
  Expected<void> restore(ByteSpan bytes);

 private:
  void put_locked(Ban ban);

  const Clock& clock_;
  mutable std::mutex mutex_;
  std::map<NodeId, Ban> bans_;
  std::uint64_t changes_ = 0;
};

inline constexpr std::size_t max_ban_file_bytes =
    16 + BanList::max_bans * (32 + 8 + 4 + 1 + BanList::max_reason_bytes);

}  // namespace neuroshard::net
