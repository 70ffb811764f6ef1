#include "core/engine/detail/job_scheduler.h"

#include "core/base/check.h"

namespace neuroshard::engine::detail {
namespace {

constexpr std::size_t queue = 4;  // one job at a time

}  // namespace

JobScheduler::JobScheduler(net::Mailbox& arrivals)
    : arrivals_(arrivals), compute_(make_thread_executor("ns-compute", queue)) {}

JobScheduler::~JobScheduler() = default;

void JobScheduler::advance() {
  if (running_ || ended_) return;
  for (const Source& source : sources_)
    if (source()) return;
}

void JobScheduler::start(std::shared_ptr<Job> job) {
  NS_CHECK(!running_ && !ended_);
  running_ = true;
  interrupt_ = CancelSource();
  // One job at a time never fills the queue, and stop() comes after end().
  NS_CHECK(compute_->post([this, job = std::move(job), token = interrupt_.token()] { run(job, token); }));
}

void JobScheduler::run(const std::shared_ptr<Job>& job, const CancelToken& interrupt) {
  job->run(interrupt);
  arrivals_.put([this, job] { finish(*job); });
}

void JobScheduler::finish(Job& job) {
  running_ = false;
  job.finish();
  advance();
}

}  // namespace neuroshard::engine::detail
