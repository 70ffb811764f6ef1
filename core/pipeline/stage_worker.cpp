#include "core/pipeline/stage_worker.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/base/check.h"

namespace neuroshard::pipeline {
namespace {

constexpr Duration sweep_interval = std::chrono::seconds(1);
constexpr std::size_t payloads_a_micro_batch = 3;  // what arrived, what was passed on, what was answered

Error refusal(ErrorCode code, std::string text) {
  return make_error(code, std::move(text));
}

}  // namespace

StageWorker::StageWorker(const Surroundings& surroundings, Executor& compute, std::shared_ptr<StageLane> lane,
                         StageOptions options)
    : around_(surroundings),
      compute_(compute),
      lane_(std::move(lane)),
      options_(std::move(options)),
      schedule_(options_.limits.schedule) {
  sweep_timer_ = around_.executor.post_after(sweep_interval, [this] { sweep(); });
}

StageWorker::~StageWorker() {
  lifetime_.end();
  closing_.clear();
  sessions_.clear();
  earlier_.clear();
}

// ---- streams

void StageWorker::take(const net::NodeId& from, std::shared_ptr<net::PeerStream> stream) {
  if (paused_) return stream->break_off(*paused_);
  const auto newcomers = std::count_if(earlier_.begin(), earlier_.end(),
                                       [](const Earlier& earlier) { return earlier.session == nullptr; });
  if (static_cast<std::size_t>(newcomers) >= options_.limits.newcomers)
    return stream->break_off(
        refusal(ErrorCode::Exhausted, "this stage has no place for more streams; try later"));
  const EarlierPtr earlier = earlier_.insert(earlier_.end(), Earlier{from, nullptr, nullptr});
  FrameStream::Events events;
  events.admit = [this, earlier](ByteSpan header) { return admit(*earlier, header); };
  events.received = [this, earlier](const Bytes& header, Bytes payload) {
    received(earlier, header, std::move(payload));
  };
  events.ended = [this, earlier](const Error&) { ended(earlier); };
  earlier->frames = std::make_unique<FrameStream>(std::move(stream), around_.executor, around_.clock,
                                                  around_.times, encode_message(Alive{}), std::move(events));
}

Expected<std::size_t> StageWorker::admit(const Earlier& earlier, ByteSpan header) const {
  const auto message = decode_message(header);
  if (!message.ok()) return message.error();
  if (const auto* follow = std::get_if<Follow>(&*message)) {
    if (auto admitted = admit_route(earlier, follow->route); !admitted.ok()) return admitted.error();
    return std::size_t{0};
  }
  if (std::holds_alternative<Alive>(*message)) return std::size_t{0};
  if (earlier.session == nullptr)
    return refusal(ErrorCode::InvalidArgument,
                   "the first message of a stream names the route of its session");
  return earlier.session->admit(*message);
}

// The signature comes last: it is the only expensive check.
Expected<void> StageWorker::admit_route(const Earlier& earlier, const Route& route) const {
  if (auto checked = check_route(route, options_.shape); !checked.ok()) return checked;
  const auto position = route.position_of(around_.own);
  if (!position) return refusal(ErrorCode::InvalidArgument, "the route does not name this node");
  if (!(route.hops[*position].range == options_.range))
    return refusal(ErrorCode::Unavailable,
                   fmt::format("this node does not hold that: it holds {}, and was asked for {}",
                               to_text(options_.range), to_text(route.hops[*position].range)));
  const net::NodeId before = *position == 0 ? crypto::node_id(route.driver) : route.hops[*position - 1].node;
  if (before != earlier.from)
    return refusal(ErrorCode::Denied, "another node is before this one on the route");
  const auto found = sessions_.find(route.session);
  if (earlier.session != nullptr && (found == sessions_.end() || found->second.get() != earlier.session))
    return refusal(ErrorCode::InvalidArgument, "a stream belongs to one session");
  if (found == sessions_.end()) {
    if (options_.admit)
      if (auto admitted = options_.admit(route.driver, route.base); !admitted.ok()) return admitted;
    std::uint64_t bytes = payload_bytes_of(route);
    for (const auto& [id, session] : sessions_) bytes += payload_bytes_of(session->route());
    if (sessions_.size() >= options_.limits.sessions || bytes > options_.limits.payload_bytes)
      return refusal(ErrorCode::Exhausted, "this stage has no place for another session");
  } else {
    const Route& now = found->second->route();
    if (route == now) return {};
    if (now.driver != route.driver)
      return refusal(ErrorCode::Denied, "the session belongs to another driver");
    if (route.revision <= now.revision)
      return refusal(ErrorCode::InvalidArgument, "the route was replaced by a newer one");
    if (route.sequences != now.sequences || route.length != now.length || route.window != now.window ||
        route.wire != now.wire)
      return refusal(ErrorCode::InvalidArgument, "a session keeps its sizes");
  }
  if (!signature_holds(route, options_.network))
    return refusal(ErrorCode::Denied, "the driver's signature of the route does not hold");
  return {};
}

std::uint64_t StageWorker::payload_bytes_of(const Route& route) const {
  const std::size_t tokens = route.tokens();
  return std::uint64_t{route.window} * payloads_a_micro_batch *
         (2 * tokens * sizeof(std::int32_t) + encoded_bytes(route.wire, tokens, options_.shape.hidden));
}

void StageWorker::received(EarlierPtr earlier, ByteSpan header, Bytes payload) {
  const Message message = decode_message(header).value();  // admitted
  if (const auto* route = std::get_if<Follow>(&message)) return follow(earlier, route->route);
  StageSession& session = *earlier->session;
  if (const auto* work = std::get_if<Work>(&message)) {
    if (auto taken = session.work(*work, std::move(payload)); !taken.ok()) refuse(session, taken.error());
    return;
  }
  if (const auto* close = std::get_if<Close>(&message)) {
    session.close(close->finished_below);
    remove(session.route().session);
  }
}

void StageWorker::follow(EarlierPtr earlier, const Route& route) {
  auto& session = sessions_[route.session];
  if (session == nullptr) {
    SessionHost& host = *this;
    session = std::make_unique<StageSession>(around_, host, route, *route.position_of(around_.own));
  } else if (!(session->route() == route)) {
    session->follow(route);
  }
  if (earlier->session == session.get()) return;
  // The stream of the hop that was replaced, or that connected anew.
  for (auto other = earlier_.begin(); other != earlier_.end(); ++other) {
    if (other->session != session.get()) continue;
    other->frames->break_off(refusal(ErrorCode::Cancelled, "another stream took the place of this one"));
    earlier_.erase(other);
    break;
  }
  earlier->session = session.get();
  session->attach(earlier->frames.get());
}

void StageWorker::ended(EarlierPtr earlier) {
  StageSession* const session = earlier->session;
  earlier_.erase(earlier);
  if (session == nullptr) return;
  session->attach(nullptr);
  if (session->position() != 0) return;
  // The driver is gone.
  session->close(0);
  remove(session->route().session);
}

void StageWorker::refuse(StageSession& session, const Error& reason) {
  for (auto earlier = earlier_.begin(); earlier != earlier_.end(); ++earlier) {
    if (earlier->session != &session) continue;
    session.attach(nullptr);
    earlier->frames->break_off(reason);
    earlier_.erase(earlier);
    break;
  }
  sessions_.erase(SessionId(session.route().session));
}

void StageWorker::refuse_all(const Error& reason) {
  while (!sessions_.empty()) refuse(*sessions_.begin()->second, reason);
}

// Its word to the hop behind is still on its way.
void StageWorker::remove(const SessionId& id) {
  const auto found = sessions_.find(id);
  for (auto earlier = earlier_.begin(); earlier != earlier_.end(); ++earlier) {
    if (earlier->session != found->second.get()) continue;
    found->second->attach(nullptr);
    earlier_.erase(earlier);
    break;
  }
  closing_.push_back(std::move(found->second));
  sessions_.erase(found);
}

void StageWorker::sweep() {
  const MonotonicTime now = around_.clock.monotonic_now();
  std::erase_if(closing_, [&](const auto& session) { return now - session->detached_at() > sweep_interval; });
  std::vector<SessionId> missing;
  for (const auto& [id, session] : sessions_)
    if (!session->attached() && now - session->detached_at() > options_.limits.earlier_hop_missing)
      missing.push_back(id);
  for (const SessionId& id : missing) {
    sessions_[id]->close(0);
    remove(id);
  }
  sweep_timer_ = around_.executor.post_after(sweep_interval, [this] { sweep(); });
}

void StageWorker::pause(const Error& reason) {
  paused_ = reason;
  for (auto earlier = earlier_.begin(); earlier != earlier_.end();) {
    if (earlier->session == nullptr) {
      earlier->frames->break_off(reason);
      earlier = earlier_.erase(earlier);
    } else {
      ++earlier;
    }
  }
  refuse_all(reason);
}

void StageWorker::resume() {
  paused_.reset();
  pump();
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
  schedule_.gradient_arrived(ids_.at({session, index}));
  pump();
}

void StageWorker::work_dropped(const SessionId& session, std::uint64_t index) {
  const auto found = ids_.find({session, index});
  if (found == ids_.end()) return;
  const std::uint64_t id = found->second;
  ids_.erase(found);
  places_.erase(id);
  if (running_ && running_->id == id)
    running_dropped_ = true;  // the job's end drops it
  else
    drop(id);
  // Not at once: a session drops its micro-batches one after the other.
  (void)around_.executor.post([this, life = lifetime_.token()] {
    if (life.alive()) pump();
  });
}

void StageWorker::drop(std::uint64_t id) {
  if (!lifetime_.token().alive() || !schedule_.drop(id)) return;
  ++lost_;
  post([lane = lane_, id]() -> std::function<void()> {
    lane->discard(id);
    return nullptr;
  });
}

// ---- jobs

void StageWorker::pump() {
  if (running_ || paused_ || !lifetime_.token().alive()) return;
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

// work: runs on the compute thread and returns what then runs on the executor; null: nothing. An executor that stops
// drops both: the node goes.
void StageWorker::post(std::function<std::function<void()>()> work) {
  (void)compute_.post([work = std::move(work), &executor = around_.executor, life = lifetime_.token()] {
    std::function<void()> then = work();
    if (then == nullptr) return;
    (void)executor.post([then = std::move(then), life] {
      if (life.alive()) then();
    });
  });
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
  drop(job.id);
  if (const auto found = sessions_.find(place.session); found != sessions_.end())
    refuse(*found->second, error);
  if (options_.trouble) options_.trouble(error);
}

// The stage has the gradient of its input: the micro-batch counts, whatever becomes of its session.
void StageWorker::counts(const Job& job, const Place& place) {
  places_.erase(job.id);
  if (const auto found = ids_.find(place); found != ids_.end() && found->second == job.id) ids_.erase(found);
}

void StageWorker::run_forward(const Job& job, const Place& place) {
  const StageSession& session = *sessions_.at(place.session);
  const StageSession::Input input = session.input_of(place.index);
  const std::uint32_t length = session.route().length;
  const WireFormat wire = session.route().wire;
  post([this, lane = lane_, job, place, input, length, wire]() -> std::function<void()> {
    auto passed = std::make_shared<Expected<StageLane::Passed>>(
        lane->forward(job.id, input.sequences, length, wire, *input.payload));
    return [this, job, place, passed] {
      forward_ended(job, place, *passed);
      pump();
    };
  });
}

void StageWorker::forward_ended(const Job& job, const Place& place, Expected<StageLane::Passed>& passed) {
  if (!passed.ok()) return fail(job, place, passed.error());
  const bool wanted = finish(job);
  if (options_.range.head) {
    schedule_.gradient_arrived(job.id);
    schedule_.done({JobKind::Backward, job.id});
    counts(job, place);
  } else if (!wanted) {
    return drop(job.id);
  }
  if (wanted) sessions_.at(place.session)->forward_done(place.index, passed->sums, std::move(passed->output));
}

void StageWorker::run_backward(const Job& job, const Place& place) {
  const StageSession& session = *sessions_.at(place.session);
  const auto rows = session.gradient_of(place.index);
  const WireFormat wire = session.route().wire;
  const std::size_t row_bytes = encoded_bytes(wire, 1, options_.shape.hidden);
  post([this, lane = lane_, job, place, rows, wire, row_bytes]() -> std::function<void()> {
    auto gradient =
        std::make_shared<Expected<Bytes>>(lane->backward(job.id, rows->size() / row_bytes, wire, *rows));
    return [this, job, place, gradient] {
      if (!gradient->ok()) {
        fail(job, place, gradient->error());
        return pump();
      }
      const bool wanted = finish(job);
      counts(job, place);
      if (wanted) sessions_.at(place.session)->backward_done(place.index, std::move(*gradient).value());
      pump();
    };
  });
}

void StageWorker::run_weights(const Job& job) {
  post([this, lane = lane_, job]() -> std::function<void()> {
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
  post([this, lane = lane_, job, counted]() -> std::function<void()> {
    auto stepped = std::make_shared<Expected<StageLane::Stepped>>(lane->step(counted.targets));
    return [this, job, counted, stepped] {
      finish(job);
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
  refuse_all(error);
  schedule_ = StageSchedule(options_.limits.schedule);
  places_.clear();
  ids_.clear();
  post([lane = lane_]() -> std::function<void()> {
    lane->drop_gradients();
    return nullptr;
  });
  if (options_.trouble) options_.trouble(error);
}

}  // namespace neuroshard::pipeline
