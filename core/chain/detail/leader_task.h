// The task of the leader of a view (agreement.h). It waits for a quorum in its view, and a short while for the others,
// one of which may have a newer lock. Then it proposes its lock, or asks its host for a block: in a stall for presence
// changes first. Pure. Threads: one.
#pragma once

#include <cstdint>

namespace neuroshard::chain {

class LeaderTask {
 public:
  // Of the members that are in the view.
  struct Support {
    bool suffices = false;  // for some block
    bool is_full = false;   // more than two thirds: for any block
    bool is_all = false;    // nobody is left to wait for
  };
  enum class Step : std::uint8_t {
    Nothing,
    WaitForOthers,  // waited() is due a short while later
    ProposeLock,
    AskPresence,  // for a block of presence changes only
    AskAny
  };

  // A view begins.
  void begin() { state_ = State::Waits; }
  // The next step, after any change. A question is put once.
  Step next(const Support& support, bool has_lock, bool presence_first);
  void waited();

  // A question to the host is open.
  bool has_asked() const { return state_ == State::AskedPresence || state_ == State::AskedAny; }
  bool has_asked_presence() const { return state_ == State::AskedPresence; }
  // The answer: there is no such block.
  void found_nothing() { state_ = has_asked_presence() ? State::NoPresence : State::Unable; }
  void proposed() { state_ = State::Proposed; }
  void cannot_propose() { state_ = State::Unable; }

  bool has_proposed() const { return state_ == State::Proposed; }
  // Nothing comes of this view, unless more members come to it.
  bool has_nothing() const { return state_ == State::Unable || state_ == State::NoPresence; }

 private:
  enum class State : std::uint8_t {
    Waits,         // for a quorum
    AwaitsOthers,  // a quorum is there
    MayAsk,
    AskedPresence,
    NoPresence,
    AskedAny,
    Unable,
    Proposed
  };
  State state_ = State::Waits;
};

}  // namespace neuroshard::chain
