// Chooses the jobs of the compute thread. One job runs at a time. Its work runs on the compute thread; the
// core executor handles its result and then chooses the next job.
//
//   core     advance() ── a source calls start() ─┐               ┌─ finish() of the job ── advance() …
//   compute                                       └─ run() ───────┘
//
// The core executor always runs between two jobs, so a command takes effect within one training step.
//
// Threads: the core executor; stop() is for the thread that destroys the engine.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/base/cancel.h"
#include "core/base/executor.h"
#include "core/net/mailbox.h"

namespace neuroshard::engine::detail {

class Job {
 public:
  virtual ~Job() = default;
  virtual void run(const CancelToken& interrupt) = 0;  // compute thread
  virtual void finish() = 0;                           // core executor
};

class JobScheduler {
 public:
  // A possible source of a job. It starts a job and returns true, or returns false to let the next one try.
  // It may also return true without a job: then no later source may run now.
  using Source = std::function<bool()>;

  // Results arrive through `arrivals`, which outlives the scheduler.
  explicit JobScheduler(net::Mailbox& arrivals);
  ~JobScheduler();

  // advance() asks the sources in the order in which they were added. Call before the first advance().
  void add_source(Source source) { sources_.push_back(std::move(source)); }
  // Starts the next job if none runs. Call it after every change that may give a source a job.
  void advance();

  // For sources only. `work` takes the interrupt token and runs on the compute thread; `then` takes the
  // result on the core executor.
  template <class Work, class Then>
  void start(Work work, Then then) {
    start(std::make_shared<JobOf<Work, Then>>(std::move(work), std::move(then)));
  }
  void start(std::shared_ptr<Job> job);
  // Requests the running job to end early. A job that ignores its token runs to its end.
  void interrupt() { interrupt_.cancel(); }
  // No further job starts.
  void end() { ended_ = true; }
  bool ended() const { return ended_; }
  // Joins the compute thread. After end().
  void stop() { compute_.reset(); }

 private:
  template <class Work, class Then>
  class JobOf final : public Job {
   public:
    JobOf(Work work, Then then) : work_(std::move(work)), then_(std::move(then)) {}
    void run(const CancelToken& interrupt) override { result_.emplace(work_(interrupt)); }
    void finish() override { then_(std::move(*result_)); }

   private:
    Work work_;
    Then then_;
    std::optional<std::invoke_result_t<Work&, const CancelToken&>> result_;
  };

  void run(const std::shared_ptr<Job>& job, const CancelToken& interrupt);  // compute thread
  void finish(Job& job);

  net::Mailbox& arrivals_;
  std::vector<Source> sources_;
  bool running_ = false;
  bool ended_ = false;
  CancelSource interrupt_;  // of the job that runs
  std::unique_ptr<Executor> compute_;
};

}  // namespace neuroshard::engine::detail
