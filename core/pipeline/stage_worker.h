// A stage that trains for sessions of other nodes' drivers and of its own: it takes micro-batches, computes them in
// the order of its schedule, passes them on, and steps its slots. It has no dataset and no tokenizer.
//
// Micro-batches that were applied before a pause count in its next step. Values that are not finite, or a lack of memory, end the
// session that brought them; other sessions go on.
//
// Memory: for each session its window of payloads, three times at most; refused beyond SessionLimits::bytes.
// Threads: the executor's, all members. The compute thread runs the jobs, one at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "core/net/mailbox.h"
#include "core/pipeline/session_table.h"
#include "core/pipeline/stage_lane.h"
#include "core/pipeline/stage_schedule.h"
#include "core/pipeline/stage_session.h"

namespace neuroshard::pipeline {

struct StageOptions {
  StageSchedule::Limits schedule;
  SessionLimits sessions;
  // For a micro-batch to come back from the next stage, if that is the last one; for each further stage; and for the driver
  // to lead the session around the next stage, before it is refused.
  Duration patience = std::chrono::seconds(60), patience_with_others = std::chrono::seconds(5);
  Duration time_to_lead_around = std::chrono::seconds(30);
  decltype(SessionRules::admit) admit = nullptr;  // as of SessionRules
  // After each step of the slots; null: nobody listens.
  std::function<void(const StageLane::Stepped&, const StageSchedule::Counted&)> stepped = nullptr;
  // A job failed; what it concerned is dropped. Null: nobody listens.
  std::function<void(const Error&)> trouble = nullptr;
};

class StageWorker final : private SessionHost {
 public:
  // lane: used on `compute` only; it, the table and all surroundings outlive the worker, and a job may run on when it
  // ends.
  StageWorker(const Surroundings& surroundings, SessionTable& table, Executor& compute,
              std::shared_ptr<StageLane> lane, StageOptions options);
  ~StageWorker() override;

  std::size_t sessions() const { return table_.size(SessionKind::Training); }
  const StageSchedule& schedule() const { return schedule_; }
  std::uint64_t steps() const { return steps_; }
  std::uint64_t lost_micro_batches() const { return lost_; }  // that were let in and will not count

 private:
  struct Place {
    SessionId session{};
    std::uint64_t index = 0;
    friend auto operator<=>(const Place&, const Place&) = default;
  };

  void work_arrived(const SessionId& session, std::uint64_t index, std::uint64_t tokens,
                    std::uint64_t targets) override;
  void gradient_arrived(const SessionId& session, std::uint64_t index) override;
  void work_dropped(const SessionId& session, std::uint64_t index) override;

  SessionRules rules();
  StageSession* session(const Place& place);

  void end_what_stands_still();
  void pump();
  void run(const Job& job);
  void run_forward(const Job& job, const Place& place);
  void forward_ended(const Job& job, const Place& place, Expected<StageLane::Passed>& passed, Duration took);
  void run_backward(const Job& job, const Place& place);
  void run_weights(const Job& job);
  void run_step(const Job& job);
  using LaneWork = std::function<std::function<void()>()>;
  bool post(LaneWork work);
  void begin(LaneWork work);
  bool finish(const Job& job);
  void fail(const Job& job, const Place& place, const Error& error);
  void counts(const Job& job, const Place& place, const Sums& sums);
  void drop(std::uint64_t id, bool begun);
  void discard();
  void lose_step(const Error& error);

  const Surroundings around_;
  SessionTable& table_;
  Executor& compute_;
  const std::shared_ptr<net::Mailbox> results_;  // of jobs: a full executor must lose none
  const std::shared_ptr<StageLane> lane_;
  const StageOptions options_;
  StageSchedule schedule_;
  std::map<std::uint64_t, Place> places_;  // of micro-batches that do not count yet
  std::map<Place, std::uint64_t> ids_;
  std::map<std::uint64_t, MonotonicTime> under_way_since_;  // of those at the later stages
  std::uint64_t next_id_ = 1, steps_ = 0, lost_ = 0;
  Sums counted_sums_;  // of the micro-batches that count in the next step
  std::optional<Job> running_;
  bool running_dropped_ = false;
  std::vector<std::uint64_t> dropped_;  // whose activations the lane may still keep
  bool discarding_ = false;             // a task for earlier ones is posted
  bool drop_gradients_ = false;         // before the next job
  std::unique_ptr<TimerHandle> timer_, again_;
  Lifetime lifetime_;
};

}  // namespace neuroshard::pipeline
