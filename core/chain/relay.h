// The way of an item to a whole committee. Up to `max_direct_voters` voters get it from its sender. In a larger
// committee nobody calls everybody: the voters stand in a grid, in the order of the leaders. A sender gives the
// item to one row and to one column of the grid. The voters of the row pass it on along their columns, and the
// voters of the column along their rows. So each voter gets it on two ways that share no voter, and a sender
// calls about 2√n others. A voter passes on what it found right and new, in bundles (docs/protocol/chain.md).
//
// Threads: the executor's. All services outlive it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "core/base/executor.h"
#include "core/base/lifetime.h"
#include "core/chain/outbox.h"

namespace neuroshard::chain {

// Places 0 to size − 1, row by row; the last row may be shorter. Immutable.
class RelayGrid {
 public:
  explicit RelayGrid(std::size_t size);
  // One place of each column: of this row, or of the row before where the last one ends.
  std::vector<std::size_t> row_of(std::size_t place) const;
  // One place of each row: of this column, or the last place of all.
  std::vector<std::size_t> column_of(std::size_t place) const;

 private:
  std::size_t size_, width_;
};

// The members that this one tells of a new block: a tree of all active members by number, from the one that led
// its view on, in which each tells `announced_below` others. None for a node that is no active member.
inline constexpr std::size_t announced_below = 8;
std::vector<net::NodeId> below_in_tree(const Registry& registry, std::uint32_t root, const net::NodeId& self);

struct RelayOptions {
  Duration gather = std::chrono::milliseconds(100);  // how long what is passed on waits for more
  std::size_t most_bytes = 256u << 10;               // of a bundle, unless one item is larger
};

class Relay {
 public:
  Relay(Outbox& outbox, Executor& executor, const net::NodeId& self, RelayOptions options = {});

  void on_tip(const ChainTip& tip);
  // An own item to all of the committee. An item with this key is replaced. One way is enough for what a voter
  // asks for when it learns that others have it.
  enum class Ways : std::uint8_t { One, Two };
  void to_all(std::uint64_t key, const ChainItem& item, Ways ways = Ways::Two);
  void drop(std::uint64_t key);
  void drop_range(std::uint64_t first, std::uint64_t last);
  // An encoded item that was right and new, along this node's row or column. Nothing outside the committee.
  void pass_on(RelayPath path, Bytes item);

 private:
  struct Bundle {
    std::vector<Bytes> items;
    std::size_t bytes = 0;
  };
  std::size_t place() const;
  std::vector<net::NodeId> at(const std::vector<std::size_t>& places) const;
  void send(RelayPath path);

  Outbox& outbox_;
  Executor& executor_;
  const net::NodeId self_;
  const RelayOptions options_;
  CommitteePtr committee_;
  std::array<Bundle, 2> bundles_;  // along the row, along the column
  std::uint64_t sent_ = 0;
  std::unique_ptr<TimerHandle> timer_;
};

}  // namespace neuroshard::chain
