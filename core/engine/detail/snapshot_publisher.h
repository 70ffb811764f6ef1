// The state that clients see: assembles the snapshot, publishes immutable copies of it, and emits events.
//
// Threads: snapshot() and subscribe() from any thread; everything else on the core executor. Event handlers
// run on the core executor, inside emit().
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "core/base/clock.h"
#include "core/node/network_view.h"
#include "core/node/node.h"
#include "core/node/subscribers.h"

namespace neuroshard::engine::detail {

class SnapshotPublisher {
 public:
  // Read for every publication. Each may be null. Their targets outlive the publisher.
  struct Sources {
    std::function<node::RoundsView()> rounds;
    std::function<node::HttpView()> http;
    node::NetworkSource* network = nullptr;
  };
  SnapshotPublisher(const Clock& clock, Sources sources);

  // Never null after the first publish().
  std::shared_ptr<const node::Snapshot> snapshot() const;
  std::unique_ptr<node::Subscription> subscribe(node::EventHandler on_event);

  // The parts write their values here and then call publish().
  node::Snapshot& draft() { return draft_; }
  void publish();
  // Reads the rounds' view into the draft without publishing it.
  void refresh_rounds();

  void emit(const node::Event& event) { subscribers_->emit(event); }
  // Publishes and emits StateChanged, unless the state is the same and there is no error.
  void set_state(node::RunState state, std::optional<Error> error = std::nullopt);
  // Another checkpoint is on the disk.
  void checkpoint_written(const std::string& name);

  // An alert stays until it is cleared. Raising an active one with the same message does nothing.
  void raise(node::Alert alert);
  void clear(const std::string& key);
  // Raises these and clears every other alert of the rounds (keys that begin with "rounds_").
  void replace_rounds_alerts(const std::vector<node::Alert>& alerts);

  // Publishes when the local HTTP server's state has changed; its trouble is the alert "http".
  void look_at_http();

 private:
  const Clock& clock_;
  const Sources sources_;
  const std::shared_ptr<node::Subscribers> subscribers_ = std::make_shared<node::Subscribers>();
  node::Snapshot draft_;  // core executor

  mutable std::mutex mutex_;
  std::shared_ptr<const node::Snapshot> published_;
};

}  // namespace neuroshard::engine::detail
