#include "core/engine/detail/snapshot_publisher.h"

#include <algorithm>
#include <utility>

namespace neuroshard::engine::detail {

SnapshotPublisher::SnapshotPublisher(const Clock& clock, Sources sources)
    : clock_(clock), sources_(std::move(sources)) {
  draft_.state = node::RunState::Idle;
}

std::shared_ptr<const node::Snapshot> SnapshotPublisher::snapshot() const {
  std::lock_guard lock(mutex_);
  return published_;
}

std::unique_ptr<node::Subscription> SnapshotPublisher::subscribe(node::EventHandler on_event) {
  return subscribers_->add(std::move(on_event));
}

void SnapshotPublisher::publish() {
  draft_.version += 1;
  draft_.taken = clock_.wall_now();
  refresh_rounds();
  if (sources_.network != nullptr) draft_.peers = sources_.network->peers();
  if (sources_.http) draft_.http = sources_.http();
  node::bound(draft_);
  auto copy = std::make_shared<const node::Snapshot>(draft_);
  std::lock_guard lock(mutex_);
  published_ = std::move(copy);
}

void SnapshotPublisher::refresh_rounds() {
  if (sources_.rounds) draft_.rounds = sources_.rounds();
}

void SnapshotPublisher::set_state(node::RunState state, std::optional<Error> error) {
  if (draft_.state == state && !error) return;
  draft_.state = state;
  publish();
  emit(node::StateChanged{state, std::move(error)});
}

void SnapshotPublisher::checkpoint_written(const std::string& name) {
  emit(node::CheckpointWritten{name});
  emit(node::CheckpointsChanged{});  // retention may have deleted older ones
}

void SnapshotPublisher::raise(node::Alert alert) {
  // As a snapshot keeps it: otherwise the same alert looks like another one the next time.
  node::bound(alert);
  alert.since = clock_.wall_now();
  for (node::Alert& existing : draft_.alerts) {
    if (existing.key != alert.key) continue;
    if (existing.message == alert.message) return;
    alert.since = existing.since;
    existing = alert;
    publish();
    return emit(node::AlertRaised{std::move(alert)});
  }
  draft_.alerts.push_back(alert);
  publish();
  emit(node::AlertRaised{std::move(alert)});
}

void SnapshotPublisher::clear(const std::string& key) {
  if (std::erase_if(draft_.alerts, [&key](const node::Alert& alert) { return alert.key == key; }) == 0)
    return;
  publish();
  emit(node::AlertCleared{key});
}

void SnapshotPublisher::look_at_http() {
  if (!sources_.http) return;
  const node::HttpView now = sources_.http();
  if (std::exchange(draft_.http, now) != now) publish();
  if (now.trouble.empty())
    clear("http");
  else
    raise({"http", node::Severity::Warning, now.trouble, {}});
}

void SnapshotPublisher::replace_rounds_alerts(const std::vector<node::Alert>& alerts) {
  std::vector<std::string> over;
  for (const node::Alert& alert : draft_.alerts) {
    const bool of_rounds = alert.key.rfind("rounds_", 0) == 0;
    if (of_rounds &&
        std::none_of(alerts.begin(), alerts.end(), [&](const auto& one) { return one.key == alert.key; }))
      over.push_back(alert.key);
  }
  for (const std::string& key : over) clear(key);
  for (const node::Alert& alert : alerts) raise(alert);
}

}  // namespace neuroshard::engine::detail
