#include "core/net/slot_router.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/net/peer_channel.h"

namespace neuroshard::net {

struct SlotRouter::Known {
  HolderEstimate estimate;
  double claimed = 0;
  std::vector<MonotonicTime> in_flight;  // when they began
  std::uint64_t calls = 0, failures = 0;
  MonotonicTime asked{};  // last
  MonotonicTime rests_until{};
  Duration rest{0};  // the latest one
  std::map<HeldSlot, MonotonicTime>
      lacks;  // slots that it does not hold by its own answer, and how long that counts
};

struct SlotRouter::Asking {
  SlotCall call;
  Done done;
  std::size_t bytes = 0;  // both ways
  std::vector<NodeId> asked;
  std::size_t in_flight = 0;
  std::optional<Error> error;
  std::unique_ptr<TimerHandle> hedge;
  bool over = false;

  bool has_asked(const NodeId& id) const { return std::find(asked.begin(), asked.end(), id) != asked.end(); }
};

SlotRouter::SlotRouter(PeerCaller& caller, Executor& executor, const Clock& clock, Holders holders, Rng rng,
                       RouterLimits limits)
    : caller_(caller),
      executor_(executor),
      clock_(clock),
      holders_of_(std::move(holders)),
      rng_(rng),
      limits_(limits),
      hedges_left_(limits.most_hedges) {}

SlotRouter::~SlotRouter() {
  lifetime_.end();
}

void SlotRouter::call(SlotCall call, Done done) {
  ++counts_.calls;
  hedges_left_ = std::min(hedges_left_ + limits_.hedges, limits_.most_hedges);
  const auto asking = std::make_shared<Asking>();
  asking->bytes = call.request.size() + call.answer_bytes;
  asking->call = std::move(call);
  asking->done = std::move(done);
  if (ask_next(asking, false)) return;
  Error error = nobody(*asking);
  const bool posted = executor_.post([this, life = lifetime_.token(), asking, error] {
    if (life.alive()) end(asking, error);
  });
  if (!posted) end(asking, std::move(error));  // the executor stops
}

std::vector<SlotHolder> SlotRouter::candidates(const Asking& asking) {
  const MonotonicTime now = clock_.monotonic_now();
  std::vector<SlotHolder> all = holders_of_(asking.call.slot);
  std::erase_if(all, [&](const SlotHolder& holder) {
    if (asking.call.only && holder.contact.id != *asking.call.only) return true;
    if (asking.has_asked(holder.contact.id)) return true;
    const auto found = known_.find(holder.contact.id);
    if (found == known_.end()) return false;
    const auto lack = found->second.lacks.find(asking.call.slot);
    return now < found->second.rests_until || (lack != found->second.lacks.end() && now < lack->second);
  });
  return all;
}

HolderPrior SlotRouter::prior_of(const Known& known) const {
  HolderPrior prior;
  if (known.claimed > 0) prior.bytes_per_second = known.claimed;
  return prior;
}

SlotHolder SlotRouter::choose(const std::vector<SlotHolder>& among, const Asking& asking) {
  const auto asked_at = [this](const SlotHolder& h) { return known(h).asked; };
  if (among.size() > 1 && rng_.uniform() < limits_.explore) {
    ++counts_.explored;
    return *std::min_element(among.begin(), among.end(),
                             [&](const auto& a, const auto& b) { return asked_at(a) < asked_at(b); });
  }
  const MonotonicTime now = clock_.monotonic_now();
  const auto expected = [&](const SlotHolder& holder) {
    const Known& k = known(holder);
    Duration time = k.estimate.expected(asking.bytes, k.in_flight.size() + 1, prior_of(k), now);
    // A holder that has let a call wait for so long will not be faster with this one.
    for (const MonotonicTime began : k.in_flight) time = std::max(time, now - began);
    return time;
  };
  return *std::min_element(among.begin(), among.end(),
                           [&](const auto& a, const auto& b) { return expected(a) < expected(b); });
}

bool SlotRouter::ask_next(const std::shared_ptr<Asking>& asking, bool hedge) {
  if (asking->asked.size() >= limits_.tries) return false;
  const std::vector<SlotHolder> among = candidates(*asking);
  if (among.empty()) return false;
  const SlotHolder holder = choose(among, *asking);
  if (asking->asked.empty()) set_hedge(asking, holder);
  ask(asking, holder, hedge);
  return true;
}

void SlotRouter::set_hedge(const std::shared_ptr<Asking>& asking, const SlotHolder& first) {
  if (!asking->call.repeatable || asking->call.only) return;
  const Known& k = known(first);
  const Duration late =
      k.estimate.late(asking->bytes, k.in_flight.size() + 1, prior_of(k), clock_.monotonic_now());
  asking->hedge = executor_.post_after(
      std::max(late, limits_.least_hedge),
      [this, life = lifetime_.token(), weak = std::weak_ptr<Asking>(asking)] {
        const auto asking = weak.lock();
        if (!asking || !life.alive() || asking->over || asking->in_flight != 1 || hedges_left_ < 1) return;
        if (!ask_next(asking, true)) return;
        hedges_left_ -= 1;
        ++counts_.hedges;
      });
}

void SlotRouter::ask(const std::shared_ptr<Asking>& asking, const SlotHolder& holder, bool hedge) {
  const MonotonicTime began = clock_.monotonic_now();
  Known& k = known(holder);
  k.asked = began;
  ++k.calls;
  k.in_flight.push_back(began);
  const std::size_t together = k.in_flight.size();
  ++asking->in_flight;
  asking->asked.push_back(holder.contact.id);
  const SlotCall& call = asking->call;
  caller_.call(holder.contact, call.method, call.request,
               call_deadline(call.allowed, call.request.size(), call.answer_bytes),
               [this, life = lifetime_.token(), asking, id = holder.contact.id, hedge, began,
                together](Expected<Bytes> answer) {
                 if (!life.alive()) return;
                 const MonotonicTime now = clock_.monotonic_now();
                 Known& k = known_[id];  // stays while a call is in flight
                 k.in_flight.erase(std::find(k.in_flight.begin(), k.in_flight.end(), began));
                 if (answer.ok()) {
                   k.estimate.answered(asking->call.request.size() + answer->size(), together, now - began,
                                       now);
                   k.rest = Duration(0);
                   k.rests_until = {};
                 } else {
                   blame(k, *asking, verdict_of(answer.error().code), now - began);
                 }
                 answered(asking, id, hedge, std::move(answer));
               });
}

SlotRouter::Verdict SlotRouter::verdict_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::Exhausted:
    case ErrorCode::Busy: return Verdict::Busy;
    case ErrorCode::NotFound:
    case ErrorCode::Unsupported: return Verdict::Lacks;
    case ErrorCode::Denied: return Verdict::Refused;
    case ErrorCode::InvalidArgument:
    case ErrorCode::Cancelled: return Verdict::Final;
    default: return Verdict::Failed;
  }
}

void SlotRouter::blame(Known& k, const Asking& asking, Verdict verdict, Duration took) {
  const MonotonicTime now = clock_.monotonic_now();
  switch (verdict) {
    case Verdict::Failed:
      ++k.failures;
      k.estimate.failed(took, now);
      k.rest = std::clamp(k.rest * 2, limits_.first_rest, limits_.longest_rest);
      // Up to half as long again, so that not all nodes return to it at once.
      k.rests_until =
          now + k.rest +
          Duration(static_cast<Duration::rep>(static_cast<double>(k.rest.count()) * rng_.uniform() / 2));
      return;
    case Verdict::Busy: k.rests_until = now + limits_.first_rest; return;
    case Verdict::Lacks: {
      constexpr std::size_t most = max_slots;
      if (k.lacks.size() >= most) k.lacks.clear();
      k.lacks[asking.call.slot] = now + limits_.longest_rest;
      return;
    }
    case Verdict::Refused: k.rests_until = now + limits_.longest_rest; return;
    case Verdict::Final: return;
  }
}

void SlotRouter::answered(const std::shared_ptr<Asking>& asking, const NodeId& from, bool hedge,
                          Expected<Bytes> answer) {
  --asking->in_flight;
  if (asking->over) return;  // the other one was first
  if (answer.ok()) {
    counts_.hedges_won += hedge ? 1 : 0;
    return end(asking, SlotAnswer{std::move(*answer), from});
  }
  const Verdict verdict = verdict_of(answer.error().code);
  asking->error = std::move(answer).error();
  // After these errors the holder may have done the work; after the other refusals it has not.
  const bool may_repeat = asking->call.repeatable || verdict != Verdict::Failed;
  if (verdict == Verdict::Final || !may_repeat) return end(asking, *asking->error);
  if (ask_next(asking, false)) {
    ++counts_.failovers;
    return;
  }
  if (asking->in_flight == 0) end(asking, *asking->error);
}

void SlotRouter::end(const std::shared_ptr<Asking>& asking, Expected<SlotAnswer> outcome) {
  asking->over = true;
  asking->hedge.reset();
  counts_.failed += outcome.ok() ? 0 : 1;
  const Done done = std::exchange(asking->done, nullptr);
  done(std::move(outcome));
}

Error SlotRouter::nobody(const Asking& asking) const {
  const std::size_t holders = holders_of_(asking.call.slot).size();
  if (holders == 0)
    return make_error(ErrorCode::NotFound, "no node is known that holds this part of the model");
  if (asking.call.only) {
    return make_error(ErrorCode::Unavailable,
                      "the node that has to go on with this part of the model can't be asked now");
  }
  return make_error(
      ErrorCode::Unavailable,
      fmt::format("none of the {} nodes that hold this part of the model can be asked now; they "
                  "failed or refused lately",
                  holders));
}

SlotRouter::Known& SlotRouter::known(const SlotHolder& holder) {
  const auto found = known_.find(holder.contact.id);
  if (found != known_.end()) {
    found->second.claimed = holder.claimed_bytes_per_second;
    return found->second;
  }
  make_room();
  Known& k = known_[holder.contact.id];
  k.claimed = holder.claimed_bytes_per_second;
  return k;
}

void SlotRouter::make_room() {
  if (known_.size() < limits_.holders) return;
  auto oldest = known_.end();
  for (auto at = known_.begin(); at != known_.end(); ++at) {
    if (!at->second.in_flight.empty()) continue;
    if (oldest == known_.end() || at->second.asked < oldest->second.asked) oldest = at;
  }
  if (oldest != known_.end()) known_.erase(oldest);
}

std::vector<HolderView> SlotRouter::holders() const {
  const MonotonicTime now = clock_.monotonic_now();
  std::vector<HolderView> views;
  for (const auto& [id, k] : known_) {
    HolderView view;
    view.id = id;
    view.latency = k.estimate.latency(prior_of(k), now);
    view.bytes_per_second = k.estimate.bytes_per_second(prior_of(k), now);
    view.success = k.estimate.success(now);
    view.in_flight = k.in_flight.size();
    view.calls = k.calls;
    view.failures = k.failures;
    view.rests = std::max(Duration(0), k.rests_until - now);
    views.push_back(view);
  }
  return views;
}

}  // namespace neuroshard::net
