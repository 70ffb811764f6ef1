// The seam: all that the app, the command line and HTTP may know of a node. Contract only; implemented by the
// engine, by a client of the control service, and by fakes in tests. Values in, values out.
//
// Threads: every member from any thread. Nothing blocks on disk, network or compute, and nothing takes a lock
// of the core's state: commands and queries are checked at once and answered later.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/base/expected.h"
#include "core/node/events.h"
#include "core/node/queries.h"
#include "core/node/snapshot.h"

namespace neuroshard::node {

struct TrainingPlan {
  std::string text_path;         // a file or folder of text; empty = the data that this directory already has
  std::uint64_t steps = 0;       // further steps, then Idle; 0 = no end
  std::uint64_t until_step = 0;  // or: up to this step of the model; 0 = no end
};

// Ends the subscription when destroyed, after waiting out a running call: so never destroy it inside the
// handler.
class Subscription {
 public:
  virtual ~Subscription() = default;
};

inline constexpr std::chrono::seconds max_snooze = std::chrono::hours(24 * 7);

using EventHandler = std::function<void(const Event&)>;  // runs on a core thread; must only enqueue
template <class T>
using Reply = std::function<void(Expected<T>)>;  // once, on a core thread; must only enqueue

class Node {
 public:
  virtual ~Node() = default;

  // The latest view; cheap; may lag behind by one publication. Never null.
  virtual std::shared_ptr<const Snapshot> snapshot() const = 0;
  [[nodiscard]] virtual std::unique_ptr<Subscription> subscribe(EventHandler on_event) = 0;

  // Commands. An error now: refused, nothing happens. Else the outcome comes as CommandDone with this id.
  // Busy: something of the kind runs already, or too many commands are under way.  Cancelled: shutting down.
  virtual Expected<CommandId> start_training(const TrainingPlan& plan) = 0;
  virtual Expected<CommandId> stop_training() = 0;  // within one step; then a checkpoint
  // The one switch: off = pause without end; on clears a snooze and takes up what finish() ended.
  virtual Expected<CommandId> set_contributing(bool on) = 0;
  // A pause that ends by itself; 1 second … max_snooze. A new one replaces the one before.
  virtual Expected<CommandId> snooze(std::chrono::seconds duration) = 0;
  // Completes the step (the round) that runs, writes a checkpoint, frees the model's memory, and switches
  // contributing off.
  virtual Expected<CommandId> finish() = 0;
  virtual Expected<CommandId> save_checkpoint() = 0;
  virtual Expected<CommandId> set_setting(const std::string& name, const std::string& value) = 0;
  // Final checkpoint and end: CommandDone, then Ended; other commands are refused from now on.
  virtual Expected<CommandId> request_shutdown() = 0;

  // Queries. An error now: a wrong argument.
  virtual Expected<void> query_series(const SeriesQuery& query, Reply<Series> reply) = 0;
  virtual Expected<void> query_logs(const LogQuery& query, Reply<LogPage> reply) = 0;
  virtual Expected<void> query_checkpoints(const CheckpointQuery& query, Reply<CheckpointPage> reply) = 0;
  virtual Expected<void> query_settings(Reply<std::vector<SettingEntry>> reply) = 0;
};

}  // namespace neuroshard::node
