// The presence of this node among the members of its network, as the other members know it: whether they wait
// for its part of a round. A node announces that it goes away before its computer suspends or shuts down and
// before its program ends, so that the others continue without it at once.
#pragma once

#include <functional>

#include "core/base/clock.h"

namespace neuroshard::runtime {

// Threads: the owner's. Neither call waits for another node. Errors: none; what the others do not hear, they
// find out by this node's silence.
class Presence {
 public:
  virtual ~Presence() = default;
  // Announces that this node goes away and stays away until announce_back(). `done` is called once, on any
  // thread, also from within this call: when the others can continue without this node or do not answer, at
  // the deadline at the latest. The owner may call this again, then only the newest `done` is called.
  virtual void announce_away(MonotonicTime deadline, std::function<void()> done) = 0;
  // Announces that this node is back. It takes part again from one of the next rounds on. A `done` that was
  // not called yet is dropped, as it is when the object ends.
  virtual void announce_back() = 0;
};

}  // namespace neuroshard::runtime
