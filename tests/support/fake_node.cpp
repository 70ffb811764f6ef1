#include "tests/support/fake_node.h"

#include <algorithm>

namespace neuroshard::testing {

FakeNode::FakeNode() {
  node::Snapshot first;
  first.version = 1;
  first.state = node::RunState::Idle;
  first.program.version = "fake";
  first.program.pid = 4321;
  published_ = std::make_shared<const node::Snapshot>(std::move(first));
}

void FakeNode::publish(const std::function<void(node::Snapshot&)>& change) {
  std::lock_guard lock(mutex_);
  node::Snapshot next = *published_;
  if (change) change(next);
  next.version = published_->version + 1;
  node::bound(next);
  published_ = std::make_shared<const node::Snapshot>(std::move(next));
}

void FakeNode::emit(const node::Event& event) {
  subscribers_->emit(event);
}

std::vector<std::string> FakeNode::commands() const {
  std::lock_guard lock(mutex_);
  return commands_;
}

void FakeNode::refuse(Error error) {
  std::lock_guard lock(mutex_);
  refusal_.reset();
  if (!error.message.empty()) refusal_ = std::move(error);
}

void FakeNode::hold_commands() {
  std::lock_guard lock(mutex_);
  hold_ = true;
}

void FakeNode::finish_commands(std::optional<Error> error) {
  std::vector<node::CommandId> held;
  {
    std::lock_guard lock(mutex_);
    held.swap(held_);
    hold_ = false;
  }
  for (const node::CommandId id : held) emit(node::CommandDone{id, error});
}

std::shared_ptr<const node::Snapshot> FakeNode::snapshot() const {
  std::lock_guard lock(mutex_);
  return published_;
}

std::unique_ptr<node::Subscription> FakeNode::subscribe(node::EventHandler on_event) {
  return subscribers_->add(std::move(on_event));
}

Expected<node::CommandId> FakeNode::accept(std::string text, std::function<void(node::Snapshot&)> change) {
  node::CommandId id = 0;
  {
    std::lock_guard lock(mutex_);
    if (refusal_) return *refusal_;
    commands_.push_back(std::move(text));
    id = next_++;
    if (hold_) {
      held_.push_back(id);
      return id;
    }
  }
  publish(change);
  emit(node::CommandDone{id, std::nullopt});
  return id;
}

Expected<node::CommandId> FakeNode::start_training(const node::TrainingPlan& plan) {
  return accept("train " + plan.text_path + " " + std::to_string(plan.steps) + " " +
                std::to_string(plan.until_step));
}
Expected<node::CommandId> FakeNode::stop_training() {
  return accept("stop training");
}
Expected<node::CommandId> FakeNode::set_contributing(bool on) {
  return accept(on ? "contribute on" : "contribute off", [on](node::Snapshot& next) {
    next.contributing = on;
    next.state = on ? node::RunState::Training : node::RunState::Paused;
    next.pause_reasons.clear();
    if (!on) next.pause_reasons.emplace_back("you switched contributing off");
  });
}
Expected<node::CommandId> FakeNode::snooze(std::chrono::seconds duration) {
  if (duration > node::max_snooze) return make_error(ErrorCode::InvalidArgument, "too long");
  return accept("snooze " + std::to_string(duration.count()));
}
Expected<node::CommandId> FakeNode::finish() {
  return accept("finish");
}
Expected<node::CommandId> FakeNode::save_checkpoint() {
  return accept("save");
}
Expected<node::CommandId> FakeNode::set_setting(const std::string& name, const std::string& value) {
  return accept("set " + name + " " + value);
}
Expected<node::CommandId> FakeNode::request_shutdown() {
  return accept("shutdown");
}

Expected<void> FakeNode::query_series(const node::SeriesQuery& query, node::Reply<node::Series> reply) {
  if (query.buckets < 1 || query.buckets > node::max_series_buckets)
    return make_error(ErrorCode::InvalidArgument, "ask for 1 to 4096 entries");
  if (query.name != "loss") {
    reply(make_error(ErrorCode::NotFound, "there is no series " + query.name));
    return {};
  }
  node::Series series{query.name, {}};
  for (std::size_t i = 0; i < query.buckets; ++i) {
    const auto step = static_cast<double>(i + 1);
    series.buckets.push_back({i, 1, 1, step, step, step});
  }
  reply(std::move(series));
  return {};
}

Expected<void> FakeNode::query_logs(const node::LogQuery& query, node::Reply<node::LogPage> reply) {
  node::LogPage page;
  for (const node::LogEntry& entry : logs) {
    if (entry.sequence <= query.after || entry.record.level < query.least) continue;
    if (page.entries.size() == query.limit) {
      page.more = true;
      break;
    }
    page.entries.push_back(entry);
  }
  page.next = page.entries.empty() ? query.after : page.entries.back().sequence;
  if (query.after != 0 && !logs.empty() && logs.front().sequence > query.after + 1)
    page.dropped = logs.front().sequence - query.after - 1;
  reply(std::move(page));
  return {};
}

Expected<void> FakeNode::query_checkpoints(const node::CheckpointQuery& query,
                                           node::Reply<node::CheckpointPage> reply) {
  auto at = checkpoints.begin();
  if (!query.after.empty()) {
    at = std::find_if(checkpoints.begin(), checkpoints.end(),
                      [&query](const auto& entry) { return entry.name == query.after; });
    if (at != checkpoints.end()) ++at;
  }
  node::CheckpointPage page;
  for (; at != checkpoints.end() && page.entries.size() < query.limit; ++at) page.entries.push_back(*at);
  page.more = at != checkpoints.end();
  reply(std::move(page));
  return {};
}

Expected<void> FakeNode::query_settings(node::Reply<std::vector<node::SettingEntry>> reply) {
  reply(settings);
  return {};
}

}  // namespace neuroshard::testing
