// The compute thread and what it does next. One job runs at a time. Its work runs on the compute thread; its
// result is handled on the core executor, and then the next job is chosen.
//
//   core     advance() ── a source calls start() ─┐               ┌─ finish() of the job ── advance() …
//   compute                                       └─ run() ───────┘
//
// Between two jobs the core executor always runs, so a command takes effect within one training step.
//
// Threads: the core executor calls everything. stop() is called by the thread that destroys the engine.
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
  // Something that may have a job. It starts the job and returns true, or returns false when the next source
  // may try. It may also return true without a job: then nothing later may run now.
  using Source = std::function<bool()>;

  // Results arrive through `arrivals`, which outlives the scheduler.
  explicit JobScheduler(net::Mailbox& arrivals);
  ~JobScheduler();

  // Sources are asked in the order in which they were added. Before the first advance().
  void add_source(Source source) { sources_.push_back(std::move(source)); }
  // Starts the next job if none runs. Call it after every change that may matter to a source.
  void advance();

  // From within a source. `work` takes the interrupt token and runs on the compute thread; `then` takes what
  // work returned.
  template <class Work, class Then>
  void start(Work work, Then then) {
    start(std::make_shared<JobOf<Work, Then>>(std::move(work), std::move(then)));
  }
  void start(std::shared_ptr<Job> job);
  // Asks the running job to end early. A job that ignores its token runs to its end.
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
