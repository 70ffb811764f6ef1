#include "core/pipeline/stage_schedule.h"

#include <algorithm>

#include "core/base/check.h"

namespace neuroshard::pipeline {

StageSchedule::StageSchedule(const Limits& limits) : limits_(limits) {
  NS_CHECK(limits.batch_tokens >= 1 && limits.most_held >= 1 && limits.most_due >= 1);
}

void StageSchedule::arrived(std::uint64_t id, std::uint64_t tokens, std::uint64_t targets) {
  const bool is_new =
      !under_way_.contains(id) && waiting_sizes_.emplace(id, MicroBatch{tokens, targets}).second;
  NS_CHECK(is_new && tokens >= 1);
  waiting_.push_back(id);
}

void StageSchedule::gradient_arrived(std::uint64_t id) {
  NS_CHECK(under_way_.contains(id));
  gradients_.push_back(id);
}

void StageSchedule::done(const Job& job) {
  switch (job.kind) {
    case JobKind::Forward: {
      NS_CHECK(!waiting_.empty() && waiting_.front() == job.id);
      waiting_.pop_front();
      const auto entry = waiting_sizes_.extract(job.id);
      under_way_tokens_ += entry.mapped().tokens;
      under_way_.emplace(job.id, entry.mapped());
      return;
    }
    case JobKind::Backward: {
      NS_CHECK(!gradients_.empty() && gradients_.front() == job.id);
      gradients_.pop_front();
      const auto entry = under_way_.extract(job.id);
      under_way_tokens_ -= entry.mapped().tokens;
      counted_.tokens += entry.mapped().tokens;
      counted_.targets += entry.mapped().targets;
      ++counted_.micro_batches;
      due_.push_back(job.id);
      return;
    }
    case JobKind::Weights:
      NS_CHECK(!due_.empty() && due_.front() == job.id);
      due_.pop_front();
      return;
    case JobKind::Step:
      NS_CHECK(under_way_.empty() && due_.empty());
      counted_ = {};
      return;
  }
}

bool StageSchedule::drop(std::uint64_t id) {
  if (waiting_sizes_.erase(id) != 0) {
    std::erase(waiting_, id);
    return true;
  }
  const auto found = under_way_.find(id);
  if (found == under_way_.end()) return false;
  under_way_tokens_ -= found->second.tokens;
  under_way_.erase(found);
  std::erase(gradients_, id);
  return true;
}

std::optional<Job> StageSchedule::next() const {
  if (due_.size() >= limits_.most_due) return Job{JobKind::Weights, due_.front()};
  if (!gradients_.empty()) return Job{JobKind::Backward, gradients_.front()};
  const bool full = counted_.tokens + under_way_tokens_ >= limits_.batch_tokens;
  const bool room = under_way_.size() + due_.size() < limits_.most_held;
  if (!full && room && !waiting_.empty()) return Job{JobKind::Forward, waiting_.front()};
  if (!due_.empty()) return Job{JobKind::Weights, due_.front()};
  if (full && under_way_.empty()) return Job{JobKind::Step, 0};
  return std::nullopt;
}

}  // namespace neuroshard::pipeline
