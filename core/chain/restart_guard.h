// Keeps a node from signing beside its own past: after a start with an old disk, and while another process runs
// with the same key. Each start of a data directory has a number (its boot) and a random number (its
// incarnation). Both are in the node's heartbeats, which every status request carries. Members keep the newest
// heartbeat of each other, and give it back with what they hold of the asking node's signatures.
//
//   what a node hears of itself                      what follows
//   while it starts: a boot as high as its own       the disk is old; it counts on from the boot it heard
//   while it starts: a signature it doesn't know     the disk is old
//   the disk is old                                  it lets this height and round go by (restart_watch.h)
//   later: a higher boot, or its own boot with       another process has its key and began later: this one
//   another incarnation                              signs nothing until its person starts it again
//
// So of two copies the one that was started last goes on. Its heartbeats reach the other one within a poll.
// A peer's word counts only with this node's own signature under it.
//
// All services outlive it. Threads: one.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>

#include "core/base/log.h"
#include "core/chain/agreement_memory.h"
#include "core/chain/history.h"
#include "core/chain/restart_watch.h"
#include "core/chain/rules.h"
#include "core/chain/status.h"

namespace neuroshard::chain {

class RestartGuard {
 public:
  struct Services {
    const ChainRules& rules;
    const crypto::KeyPair& key;
    const Clock& clock;
    Logger& logger;
    std::function<void(std::uint64_t boots)> keep;  // this data directory counts so many starts
    std::function<void(const net::NodeId&)> ask;    // for a status
  };
  // ask_for: the longest that it waits for answers.
  RestartGuard(Services services, Duration ask_for, std::uint64_t incarnation);

  // boot: the number of this start.
  void start(std::uint64_t boot) { boot_ = boot; }
  // The history is of the disk, or came whole with rounds behind it.
  void begin();
  void on_block(const ChainTip& tip);
  // Asks the committee while it may not vote, or while it lacks its votes. Whether may_vote() changed.
  bool tick(const ChainTip& tip, bool lacks_votes);

  bool may_vote() const { return !runs_twice_ && watch_.may_vote(); }
  bool may_sign(std::uint64_t round) const { return !runs_twice_ && watch_.may_sign(round); }
  bool is_quiet(std::uint64_t round) const { return watch_.is_quiet(round); }
  bool runs_twice() const { return runs_twice_; }

  // Of this start, signed.
  Heartbeat heartbeat(const ChainTip& tip);
  StatusRequest request(const ChainTip& tip, bool lacks_votes);
  // From the member itself. Whether it was started since its last heartbeat: then it has forgotten what it took.
  bool note(const net::NodeId& member, const Heartbeat& heartbeat, const Registry& registry);
  // Null: none.
  const Heartbeat* newest(const net::NodeId& member) const;

  struct Own {
    const AgreementMemory& votes;
    SignedByMember signed_in_round;
  };
  // own: what this node remembers. forgotten: a vote that it does not remember, at the next height.
  struct Told {
    bool changed = false;  // may_vote(), or forgotten
    bool counts = false;   // about this height, and no message of an earlier start is under way
    std::optional<Vote> forgotten;
  };
  Told on_status(const net::NodeId& from, const ChainStatus& status, const ChainTip& tip, const Own& own);

 private:
  struct Start {
    Heartbeat highest;  // of equal boots the first one
    std::uint64_t last = 0;
  };
  bool is_first_start(const ChainTip& tip) const;
  bool have_enough_answered(const ChainTip& tip) const;
  void hear_of_self(const Heartbeat& heartbeat, const ChainTip& tip);
  void is_old(const ChainTip& tip);
  std::optional<Vote> forgotten_vote(const SignedByMember& held, const ChainTip& tip,
                                     const AgreementMemory& votes) const;
  bool forgot_in_round(const SignedByMember& held, const ChainTip& tip, const SignedByMember& own) const;

  const Services services_;
  const net::NodeId self_;
  const std::uint64_t incarnation_;
  std::uint64_t boot_ = 0;
  RestartWatch watch_;
  MonotonicTime answers_from_{};  // count
  bool runs_twice_ = false;
  std::optional<Heartbeat> own_;         // the last that was signed
  std::set<net::NodeId> told_;           // have answered this start, at this height
  std::map<net::NodeId, Start> starts_;  // of members
};

}  // namespace neuroshard::chain
