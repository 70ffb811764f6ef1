#include "core/pipeline/stage_worker.h"

#include <algorithm>
#include <set>
#include <utility>

namespace neuroshard::pipeline {
namespace {

constexpr Duration patience_interval = std::chrono::seconds(1);
constexpr Duration job_asked_again = std::chrono::milliseconds(100);  // of a full queue
constexpr std::size_t payloads_a_micro_batch = 3;  // what arrived, what was passed on, what was answered

}  // namespace

StageWorker::StageWorker(const Surroundings& surroundings, SessionTable& table, Executor& compute,
                         std::shared_ptr<StageLane> lane, StageOptions options)
    : around_(surroundings),
      table_(table),
      compute_(compute),
      results_(std::make_shared<net::Mailbox>(surroundings.executor)),
      lane_(std::move(lane)),
      options_(std::move(options)),
      schedule_(options_.schedule) {
  table_.serve(SessionKind::Training, rules());
  timer_ = around_.executor.post_after(patience_interval, [this] { end_what_stands_still(); });
}

StageWorker::~StageWorker() {
  lifetime_.end();
  table_.withdraw(SessionKind::Training);
  results_->close();
}

SessionRules StageWorker::rules() {
  SessionRules rules;
  rules.limits = options_.sessions;
  rules.admit = options_.admit;
  rules.bytes_of = [hidden = around_.shape.hidden](const Route& route) {
    const std::size_t tokens = route.tokens();
    return std::uint64_t{route.window} * payloads_a_micro_batch *
           (2 * tokens * sizeof(std::int32_t) + encoded_bytes(route.wire, tokens, hidden));
  };
  rules.make = [this](const Route& route, std::size_t position) {
    SessionHost& host = *this;
    return std::make_unique<StageSession>(around_, host, route, position);
  };
  return rules;
}

// A step waits for all that is under way, so one that never returns would hold up everybody. The stage before the one that
// keeps it is the first to lose its patience, and names that one. The driver gets no more time by what it does then.
void StageWorker::end_what_stands_still() {
  const MonotonicTime now = around_.clock.monotonic_now();
  std::set<SessionId> late, over;
  for (const auto& [id, since] : under_way_since_) {
    const Place& place = places_.at(id);
    const StageSession& one = *session(place);  // its end drops what is under way
    const auto others = static_cast<std::int64_t>(one.hops_behind()) - 1;
    const Duration patience = options_.patience + others * options_.patience_with_others;
    if (now - since > patience + options_.time_to_lead_around) over.insert(place.session);
    if (now - std::max(since, one.led_at()) > patience) late.insert(place.session);
  }
  const Error error =
      make_error(ErrorCode::Timeout, "a micro-batch did not come back from the later stages in time");
  for (const SessionId& id : over) table_.refuse_driver(id, error);
  for (const SessionId& id : late)
    if (HopSession* const one = table_.find(SessionKind::Training, id)) one->doubt_next(error);
  timer_ = around_.executor.post_after(patience_interval, [this] { end_what_stands_still(); });
}

StageSession* StageWorker::session(const Place& place) {
  return static_cast<StageSession*>(table_.find(SessionKind::Training, place.session));
}

// ---- micro-batches

void StageWorker::work_arrived(const SessionId& session, std::uint64_t index, std::uint64_t tokens,
                               std::uint64_t targets) {
  const std::uint64_t id = next_id_++;
  places_[id] = {session, index};
  ids_[{session, index}] = id;
  schedule_.arrived(id, tokens, targets);
  pump();
}

void StageWorker::gradient_arrived(const SessionId& session, std::uint64_t index) {
  const std::uint64_t id = ids_.at({session, index});
  under_way_since_.erase(id);
  schedule_.gradient_arrived(id);
  pump();
}

void StageWorker::work_dropped(const SessionId& session, std::uint64_t index) {
  const auto found = ids_.find({session, index});
  if (found == ids_.end()) return;
  const std::uint64_t id = found->second;
  ids_.erase(found);
  places_.erase(id);
  under_way_since_.erase(id);
  if (running_ && running_->id == id)
    running_dropped_ = true;  // the job's end drops it
  else
    drop(id, !schedule_.waits(id));
  // Not at once: a session drops its micro-batches one after the other.
  results_->put([this, life = lifetime_.token()] {
    if (life.alive()) pump();
  });
}

void StageWorker::drop(std::uint64_t id, bool begun) {
  if (!lifetime_.token().alive() || !schedule_.drop(id) || !begun) return;
  ++lost_;
  dropped_.push_back(id);
  discard();
}

// One task at a time: a driver that has many micro-batches dropped would fill the compute thread's queue.
void StageWorker::discard() {
  if (discarding_ || dropped_.empty()) return;
  discarding_ = post([this, lane = lane_, dropped = dropped_]() -> std::function<void()> {
    for (const std::uint64_t id : dropped) lane->discard(id);
    return [this] {
      discarding_ = false;
      discard();
    };
  });
  if (discarding_) dropped_.clear();
}

// ---- jobs

void StageWorker::pump() {
  if (running_ || table_.paused(SessionKind::Training) || !lifetime_.token().alive()) return;
  discard();  // what the queue had no place for
  const auto job = schedule_.next();
  if (!job) return;
  running_ = job;
  running_dropped_ = false;
  run(*job);
}

void StageWorker::run(const Job& job) {
  switch (job.kind) {
    case JobKind::Forward: return run_forward(job, places_.at(job.id));
    case JobKind::Backward: return run_backward(job, places_.at(job.id));
    case JobKind::Weights: return run_weights(job);
    case JobKind::Step: return run_step(job);
  }
}

// work: runs on the compute thread and returns what then runs on the executor; null: nothing. False: the compute
// thread's queue is full, or it stops. An executor that stops drops both: the node goes.
bool StageWorker::post(LaneWork work) {
  return compute_.post([work = std::move(work), results = results_, life = lifetime_.token()] {
    std::function<void()> then = work();
    if (then == nullptr) return;
    results->put([then = std::move(then), life] {
      if (life.alive()) then();
    });
  });
}

// The work of the running job, after what was dropped: its memory may be needed. Where the queue has no place, the schedule
// names the same job again a little later.
void StageWorker::begin(LaneWork work) {
  const bool posted = post([lane = lane_, dropped = dropped_, all = drop_gradients_,
                            work = std::move(work)]() -> std::function<void()> {
    for (const std::uint64_t id : dropped) lane->discard(id);
    if (all) lane->drop_gradients();
    return work();
  });
  if (posted) {
    dropped_.clear();
    drop_gradients_ = false;
    return;
  }
  running_.reset();
  again_ = around_.executor.post_after(job_asked_again, [this] { pump(); });
}

// False: what the job was for has been dropped meanwhile.
bool StageWorker::finish(const Job& job) {
  running_.reset();
  schedule_.done(job);
  return !std::exchange(running_dropped_, false);
}

// A micro-batch that can't pass here: it does not count, and its session goes elsewhere.
void StageWorker::fail(const Job& job, const Place& place, const Error& error) {
  running_.reset();
  running_dropped_ = false;
  drop(job.id, true);
  table_.refuse(place.session, error);
  if (options_.trouble) options_.trouble(error);
}

// The stage has the gradient of its input: the micro-batch counts, whatever becomes of its session.
void StageWorker::counts(const Job& job, const Place& place, const Sums& sums) {
  counted_sums_.add(sums);
  places_.erase(job.id);
  if (const auto found = ids_.find(place); found != ids_.end() && found->second == job.id) ids_.erase(found);
}

void StageWorker::run_forward(const Job& job, const Place& place) {
  const StageSession& from = *session(place);
  const StageSession::Input input = from.input_of(place.index);
  const std::uint32_t length = from.route().length;
  const WireFormat wire = from.route().wire;
  begin([this, lane = lane_, &clock = around_.clock, job, place, input, length,
         wire]() -> std::function<void()> {
    const MonotonicTime began = clock.monotonic_now();
    auto passed = std::make_shared<Expected<StageLane::Passed>>(
        lane->forward(job.id, input.sequences, length, wire, *input.payload));
    return [this, job, place, passed, took = clock.monotonic_now() - began] {
      forward_ended(job, place, *passed, took);
      pump();
    };
  });
}

void StageWorker::forward_ended(const Job& job, const Place& place, Expected<StageLane::Passed>& passed,
                                Duration took) {
  if (!passed.ok()) return fail(job, place, passed.error());
  const bool wanted = finish(job);
  if (lane_->range().head) {
    schedule_.gradient_arrived(job.id);
    schedule_.done({JobKind::Backward, job.id});
    counts(job, place, passed->sums);
  } else if (!wanted) {
    return drop(job.id, true);
  }
  if (!lane_->range().head) under_way_since_[job.id] = around_.clock.monotonic_now();
  if (wanted) session(place)->forward_done(place.index, passed->sums, std::move(passed->output), took);
}

void StageWorker::run_backward(const Job& job, const Place& place) {
  const StageSession& from = *session(place);
  const auto rows = from.gradient_of(place.index);
  const Sums sums = from.sums_of(place.index);
  const WireFormat wire = from.route().wire;
  const std::size_t row_bytes = encoded_bytes(wire, 1, around_.shape.hidden);
  begin([this, lane = lane_, &clock = around_.clock, job, place, rows, sums, wire,
         row_bytes]() -> std::function<void()> {
    const MonotonicTime began = clock.monotonic_now();
    auto gradient =
        std::make_shared<Expected<Bytes>>(lane->backward(job.id, rows->size() / row_bytes, wire, *rows));
    return [this, job, place, sums, gradient, took = clock.monotonic_now() - began] {
      if (!gradient->ok()) {
        fail(job, place, gradient->error());
        return pump();
      }
      const bool wanted = finish(job);
      counts(job, place, sums);
      if (wanted) session(place)->backward_done(place.index, std::move(*gradient).value(), took);
      pump();
    };
  });
}

void StageWorker::run_weights(const Job& job) {
  begin([this, lane = lane_, job]() -> std::function<void()> {
    auto done = std::make_shared<Expected<void>>(lane->weights(job.id));
    return [this, job, done] {
      finish(job);
      if (!done->ok()) lose_step(done->error());
      pump();
    };
  });
}

void StageWorker::run_step(const Job& job) {
  const StageSchedule::Counted counted = schedule_.counted();
  const Sums sums = counted_sums_;
  begin([this, lane = lane_, job, counted, sums]() -> std::function<void()> {
    auto stepped = std::make_shared<Expected<StageLane::Stepped>>(lane->step(counted.targets, sums));
    return [this, job, counted, stepped] {
      finish(job);
      counted_sums_ = {};
      if (stepped->ok()) {
        ++steps_;
        if (options_.stepped) options_.stepped(**stepped, counted);
      } else if (options_.trouble) {
        options_.trouble(stepped->error());
      }
      pump();
    };
  });
}

// The gradients are incomplete: what counts towards the step is lost, and so is all that is under way.
void StageWorker::lose_step(const Error& error) {
  table_.refuse_all(SessionKind::Training, error);
  schedule_ = StageSchedule(options_.schedule);
  counted_sums_ = {};
  places_.clear();
  ids_.clear();
  under_way_since_.clear();
  drop_gradients_ = !post([lane = lane_]() -> std::function<void()> {
    lane->drop_gradients();
    return nullptr;
  });
  if (options_.trouble) options_.trouble(error);
}

}  // namespace neuroshard::pipeline
