// Whether the other members wait for this node's part of a round: it is away while its owner leaves (presence.h), and while
// the disk has no room for a round.
#pragma once

#include <optional>

#include "core/base/lifetime.h"
#include "core/chain/node.h"
#include "core/runtime/peer_host.h"
#include "core/runtime/presence.h"

namespace neuroshard::runtime {

class RoundsPresence final : public Presence {
 public:
  // The node of the chain; null: it has not begun.
  using FindNode = std::function<chain::ChainNode*()>;

  // host outlives it.
  RoundsPresence(PeerHost& host, FindNode node);

  // ---- The owner's thread. Nothing after close().
  // By a statement in the next block. The node waits at most two seconds for voters that do not answer, and where it
  // has no vote.
  void announce_away(MonotonicTime deadline, std::function<void()> done) override;
  void announce_back() override;

  // ---- The host's executor.
  // The chain's node has started: its rounds begin while it is away.
  void begin();
  void set_no_room(bool no_room);
  void forget_room() { no_room_ = false; }  // the chain's node has ended
  bool is_away() const { return leaving_.has_value(); }
  bool has_no_room() const { return no_room_; }
  void close();

 private:
  struct Leaving {
    MonotonicTime begun, deadline;
    std::function<void()> done;  // empty once it was called
  };
  bool may_go() const;
  void check();

  PeerHost& host_;
  const FindNode find_node_;
  std::optional<Leaving> leaving_;  // from announce_away() to announce_back()
  bool no_room_ = false;
  std::unique_ptr<TimerHandle> timer_;
};

}  // namespace neuroshard::runtime
