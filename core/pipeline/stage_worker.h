// A stage that works for sessions of other nodes' drivers and of its own: it takes micro-batches, computes them in the
// order of its schedule, passes them on, and steps its slots. It has no dataset and no tokenizer.
//
// A stage that pauses breaks its streams off; drivers then lead their sessions around it within one micro-batch. What
// it applied before counts in its next step. A session whose earlier hop is gone waits for another one; without a
// driver it ends, and its unfinished micro-batches are lost.
//
// Bad input: a stream of a stranger, a route that is wrong or leads elsewhere, a message that is out of order or too
// large, or values that are not finite break that stream off with a reason; other sessions go on.
//
// Memory: for each session its window of payloads, three times at most; refused beyond Limits::payload_bytes.
// Threads: the executor's, all members. The compute thread runs the jobs, one at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <set>

#include "core/pipeline/stage_lane.h"
#include "core/pipeline/stage_schedule.h"
#include "core/pipeline/stage_session.h"

namespace neuroshard::pipeline {

struct StageLimits {
  StageSchedule::Limits schedule;
  std::size_t sessions = 32;
  std::size_t newcomers = 64;              // streams that have not named their session
  std::uint64_t payload_bytes = 1u << 30;  // of all sessions
  Duration earlier_hop_missing = std::chrono::seconds(15);
};

struct StageOptions {
  compute::ModelShape shape;
  StageRange range;
  StageLimits limits;
  Bytes network;  // for the signatures of routes
  // Whether this driver may use the stage at this base; null: every one. The error's message travels to it.
  std::function<Expected<void>(const crypto::PublicKey& driver, const Hash256& base)> admit;
  // After each step of the slots; null: nobody listens.
  std::function<void(const StageLane::Stepped&, const StageSchedule::Counted&)> stepped;
  // A job failed; what it concerned is dropped. Null: nobody listens.
  std::function<void(const Error&)> trouble;
};

class StageWorker final : private SessionHost {
 public:
  // lane: used on `compute` only; it and all surroundings outlive the worker, and a job may run on when it ends.
  StageWorker(const Surroundings& surroundings, Executor& compute, std::shared_ptr<StageLane> lane,
              StageOptions options);
  ~StageWorker() override;

  // A stream of method PipelineSession that another node opened.
  void take(const net::NodeId& from, std::shared_ptr<net::PeerStream> stream);
  // The owner wants its machine: the reason travels to the drivers. A job under way ends.
  void pause(const Error& reason);
  void resume();
  bool paused() const { return paused_.has_value(); }

  std::size_t sessions() const { return sessions_.size(); }
  const StageSchedule& schedule() const { return schedule_; }
  std::uint64_t steps() const { return steps_; }
  std::uint64_t lost_micro_batches() const { return lost_; }  // that were let in and will not count

 private:
  struct Earlier {  // the stream of a hop before
    net::NodeId from{};
    std::unique_ptr<FrameStream> frames;
    StageSession* session = nullptr;  // null: a newcomer
  };
  using EarlierPtr = std::list<Earlier>::iterator;
  struct Place {
    SessionId session{};
    std::uint64_t index = 0;
    friend auto operator<=>(const Place&, const Place&) = default;
  };

  void work_arrived(const SessionId& session, std::uint64_t index, std::uint64_t tokens,
                    std::uint64_t targets) override;
  void gradient_arrived(const SessionId& session, std::uint64_t index) override;
  void work_dropped(const SessionId& session, std::uint64_t index) override;

  Expected<std::size_t> admit(const Earlier& earlier, ByteSpan header) const;
  Expected<void> admit_route(const Earlier& earlier, const Route& route) const;
  std::uint64_t payload_bytes_of(const Route& route) const;
  void received(EarlierPtr earlier, ByteSpan header, Bytes payload);
  void follow(EarlierPtr earlier, const Route& route);
  void ended(EarlierPtr earlier);
  void refuse(StageSession& session, const Error& reason);
  void refuse_all(const Error& reason);
  void remove(const SessionId& session);
  void sweep();

  void pump();
  void run(const Job& job);
  void run_forward(const Job& job, const Place& place);
  void forward_ended(const Job& job, const Place& place, Expected<StageLane::Passed>& passed);
  void run_backward(const Job& job, const Place& place);
  void run_weights(const Job& job);
  void run_step(const Job& job);
  void post(std::function<std::function<void()>()> work);
  bool finish(const Job& job);
  void fail(const Job& job, const Place& place, const Error& error);
  void counts(const Job& job, const Place& place);
  void drop(std::uint64_t id);
  void lose_step(const Error& error);

  const Surroundings around_;
  Executor& compute_;
  const std::shared_ptr<StageLane> lane_;
  const StageOptions options_;
  StageSchedule schedule_;
  std::map<SessionId, std::unique_ptr<StageSession>> sessions_;
  std::list<std::unique_ptr<StageSession>> closing_;
  std::list<Earlier> earlier_;
  std::map<std::uint64_t, Place> places_;  // of micro-batches that do not count yet
  std::map<Place, std::uint64_t> ids_;
  std::uint64_t next_id_ = 1, steps_ = 0, lost_ = 0;
  std::optional<Job> running_;
  bool running_dropped_ = false;
  std::optional<Error> paused_;
  std::unique_ptr<TimerHandle> sweep_timer_;
  Lifetime lifetime_;
};

}  // namespace neuroshard::pipeline
