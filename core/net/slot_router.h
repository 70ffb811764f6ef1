// Chooses a holder of a slot for each call: the one that is expected to answer first, by its past calls
// (holder_estimate.h), its calls in flight and its failures. A holder that does not answer rests
// before it is called again, longer each time, and the call goes to the next holder at once. A late call that
// may be made twice is hedged: a second holder is called, within a budget, and the first answer counts ("The
// Tail at Scale", Dean and Barroso 2013). A few calls go to the holder that has not been called for longest,
// so that the router notices holders that have become faster.
//
// No product path uses it: no node holds a part of a model yet. The pipeline over several nodes will make its
// calls through it.
//
// Threads: the caller's executor, all members and callbacks.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "core/base/executor.h"
#include "core/base/lifetime.h"
#include "core/base/rng.h"
#include "core/net/holder_estimate.h"
#include "core/net/node_record.h"
#include "core/net/peer_caller.h"

namespace neuroshard::net {

struct SlotHolder {
  Contact contact;
  double claimed_bytes_per_second = 0;  // as its record says; used for the first call. 0: unknown
};

struct RouterLimits {
  std::size_t holders =
      1024;  // measured at the same time; the idle one that was not called for longest makes room
  std::size_t tries = 3;                                  // holders called for one request, hedges included
  double hedges = 0.05;                                   // of all calls, on average
  double most_hedges = 5;                                 // that the budget saves up
  Duration least_hedge = std::chrono::milliseconds(200);  // no call counts as late earlier
  double explore = 0.02;  // of all calls, to the holder that was not called for longest
  Duration first_rest = std::chrono::seconds(1);  // after a failure; doubles with each further one
  Duration longest_rest = std::chrono::minutes(2);
};

struct SlotCall {
  HeldSlot slot;
  Method method{};
  Bytes request;
  std::size_t answer_bytes = 0;                // roughly
  Duration allowed = std::chrono::seconds(5);  // for the holder's work and the latency; bytes add to it
  bool repeatable = true;                      // two holders may do it, or one twice
  std::optional<NodeId> only = std::nullopt;   // this holder or none: a backward pass retraces its way
};

struct SlotAnswer {
  Bytes bytes;
  NodeId from{};
};

// A holder as the router knows it.
struct HolderView {
  NodeId id{};
  Duration latency{};
  double bytes_per_second = 0;
  double success = 0;  // share of its recent calls
  std::size_t in_flight = 0;
  std::uint64_t calls = 0, failures = 0;
  Duration rests{};  // from now; 0: it can be called
};

struct RouterCounts {
  std::uint64_t calls = 0, failed = 0;  // as requested
  std::uint64_t failovers = 0, hedges = 0, hedges_won = 0, explored = 0;
};

class SlotRouter {
 public:
  using Done = std::function<void(Expected<SlotAnswer>)>;
  // The holders of a slot now; asked for anew for each try, because they change.
  using Holders = std::function<std::vector<SlotHolder>(const HeldSlot&)>;

  // All outlive the router. `rng`: for exploring and for rests.
  SlotRouter(PeerCaller& caller, Executor& executor, const Clock& clock, Holders holders, Rng rng,
             RouterLimits limits = {});
  ~SlotRouter();
  SlotRouter(const SlotRouter&) = delete;
  SlotRouter& operator=(const SlotRouter&) = delete;

  // `done` is called exactly once, later, and never after the router is destroyed. Errors: NotFound (the slot
  // has no holder) · Unavailable (its holders rest or were all tried; the message says how many) · the last
  // holder's error · for a call that is not repeatable, Timeout and Unavailable as they come: the holder may
  // have done the work.
  void call(SlotCall call, Done done);

  std::vector<HolderView> holders() const;
  const RouterCounts& counts() const { return counts_; }

 private:
  struct Known;
  struct Asking;
  enum class Verdict : std::uint8_t { Failed, Busy, Lacks, Refused, Final };

  static Verdict verdict_of(ErrorCode code);
  Known& known(const SlotHolder& holder);
  HolderPrior prior_of(const Known& known) const;
  std::vector<SlotHolder> candidates(const Asking& asking);
  SlotHolder choose(const std::vector<SlotHolder>& among, const Asking& asking);
  bool ask_next(const std::shared_ptr<Asking>& asking, bool hedge);
  void ask(const std::shared_ptr<Asking>& asking, const SlotHolder& holder, bool hedge);
  void answered(const std::shared_ptr<Asking>& asking, const NodeId& from, bool hedge,
                Expected<Bytes> answer);
  void blame(Known& known, const Asking& asking, Verdict verdict, Duration took);
  void set_hedge(const std::shared_ptr<Asking>& asking, const SlotHolder& first);
  void end(const std::shared_ptr<Asking>& asking, Expected<SlotAnswer> outcome);
  Error nobody(const Asking& asking) const;
  void make_room();

  PeerCaller& caller_;
  Executor& executor_;
  const Clock& clock_;
  const Holders holders_of_;
  Rng rng_;
  const RouterLimits limits_;
  double hedges_left_;
  std::unordered_map<NodeId, Known, NodeIdHash> known_;
  RouterCounts counts_;
  Lifetime lifetime_;
};

}  // namespace neuroshard::net
