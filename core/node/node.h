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
#include <optional>
#include <string>
#include <vector>

#include "core/base/expected.h"
#include "core/node/events.h"
#include "core/node/generation.h"
#include "core/node/http_key.h"
#include "core/node/queries.h"
#include "core/node/snapshot.h"

namespace neuroshard::node {

class MemberDecisions;  // member_decisions.h
class Records;          // records.h
struct Invitation;      // network_view.h
struct NetworkView;     // network_view.h
struct RoundsReport;    // rounds_report.h

struct TrainingPlan {
  std::string text_path;         // a file or folder of text; empty = the data that this directory already has
  std::uint64_t steps = 0;       // further steps, then Idle; 0 = no end
  std::uint64_t until_step = 0;  // or: up to this step of the model; 0 = no end
};

// Readings of a desktop session; unset = this session can't tell.
struct SessionSensors {
  std::optional<std::chrono::seconds> input_idle;  // since the last key or mouse movement
  std::optional<bool> full_screen;
  std::string full_screen_program;
  std::optional<bool> metered;
};
inline constexpr std::chrono::seconds sensor_lease{10};  // then a report is stale: unknown

// Ends the subscription when destroyed, after waiting out a running call: so never destroy it inside the
// handler.
class Subscription {
 public:
  virtual ~Subscription() = default;
};

// A restore can be undone for this many steps and for this long, whichever is more: a small model makes the
// steps before a user looks.
inline constexpr std::uint64_t undo_steps = 50;
inline constexpr std::chrono::minutes undo_time{10};
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
  // Commands that are under way together may be done in any order; a caller to whom the order matters waits
  // for CommandDone.
  virtual Expected<CommandId> start_training(const TrainingPlan& plan) = 0;
  virtual Expected<CommandId> stop_training() = 0;  // within one step; then a checkpoint
  // The one switch: off = pause without end; on clears a snooze and resumes after finish().
  virtual Expected<CommandId> set_contributing(bool on) = 0;
  // A pause that ends by itself; 1 second … max_snooze. A new one replaces the one before.
  virtual Expected<CommandId> snooze(std::chrono::seconds duration) = 0;
  // Completes the step (the round) that runs, writes a checkpoint, frees the model's memory, and switches
  // contributing off.
  virtual Expected<CommandId> finish() = 0;
  // "Run anyway": ignores the rules (not the user's own pause) for so long; 0 = take the rules up again.
  virtual Expected<CommandId> override_rules(std::chrono::seconds duration) = 0;
  // A report of this session's sensors, good for sensor_lease; nothing is kept of it.
  virtual Expected<void> report_session(const SessionSensors& sensors) = 0;

  // Checkpoints. Names are those of query_checkpoints. Long ones report CommandProgress and end early after
  // cancel().
  virtual Expected<CommandId> save_checkpoint() = 0;
  // Training continues from it. The state before is kept for undo_restore() until the next restore, or until
  // undo_steps further steps are made and undo_time is over.
  virtual Expected<CommandId> restore_checkpoint(const std::string& name) = 0;
  virtual Expected<CommandId> undo_restore() = 0;
  virtual Expected<CommandId> verify_checkpoint(const std::string& name) = 0;  // VerifyResult
  virtual Expected<CommandId> compare_checkpoints(const std::string& first, const std::string& second) = 0;
  virtual Expected<CommandId> pin_checkpoint(const std::string& name, bool pinned) = 0;
  virtual Expected<CommandId> delete_checkpoint(const std::string& name) = 0;  // not the newest, not pinned
  virtual Expected<CommandId> prune_checkpoints(const PrunePolicy& policy) = 0;
  // To a new file: "safetensors" (weights), "gguf" (llama.cpp); or a new folder: "huggingface", "checkpoint" (all of it,
  // for import elsewhere). A type behind gguf or huggingface stores the weights in fewer bits: "gguf:q8_0", f16, bf16.
  virtual Expected<CommandId> export_checkpoint(const std::string& name, const std::string& format,
                                                const std::string& path) = 0;
  virtual Expected<CommandId> import_checkpoint(const std::string& path) = 0;  // ImportResult

  // Text from the running model, between training steps; without a loaded model the newest checkpoint is
  // read. The pieces come to `on_text` (a core thread; must only enqueue), valid UTF-8; the outcome is a
  // GenerateResult.
  // Several texts are generated in turns; Busy beyond that.
  virtual Expected<CommandId> generate(const GenerateRequest& request, TextHandler on_text) = 0;
  // Asks a running command to end early: verify, compare, export, import, generate. Unknown ids are ignored.
  virtual Expected<void> cancel(CommandId id) = 0;
  // Asks peers to dial this node now; query_network() has the result. Unsupported: the node has joined no
  // network.
  virtual Expected<void> test_reachability() = 0;
  virtual MemberDecisions& decisions() = 0;
  virtual Records& records() = 0;  // evaluations, and the history as files
  // An empty value takes the setting back to its default.
  virtual Expected<CommandId> set_setting(const std::string& name, const std::string& value) = 0;
  // Final checkpoint and end: CommandDone, then Ended; other commands are refused from now on.
  virtual Expected<CommandId> request_shutdown() = 0;

  // Queries. An error now: a wrong argument.
  virtual Expected<void> query_series(const SeriesQuery& query, Reply<Series> reply) = 0;
  virtual Expected<void> query_logs(const LogQuery& query, Reply<LogPage> reply) = 0;
  virtual Expected<void> query_checkpoints(const CheckpointQuery& query, Reply<CheckpointPage> reply) = 0;
  virtual Expected<void> query_prune(const PrunePolicy& policy, Reply<PrunePreview> reply) = 0;
  // All slots of the model, in its order; max_slots at most.
  virtual Expected<void> query_slots(Reply<std::vector<SlotEntry>> reply) = 0;
  // By layer, then expert; empty for a dense model; max_slots at most.
  virtual Expected<void> query_experts(Reply<std::vector<ExpertLoad>> reply) = 0;
  virtual Expected<void> query_data(Reply<DataView> reply) = 0;
  // At most max_token_text bytes.
  virtual Expected<void> query_tokens(const std::string& text, Reply<std::vector<TokenPiece>> reply) = 0;
  // The network as this node sees it; taking_part is false where it has joined none.
  virtual Expected<void> query_network(Reply<NetworkView> reply) = 0;
  // A new link for a person to send. with_vote: it lets one wallet vote, if this node's wallet can do that.
  virtual Expected<void> query_invitation(bool with_vote, Reply<Invitation> reply) = 0;
  // Outer rounds and the reports of the network's nodes; taking_part is false where there are none.
  virtual Expected<void> query_rounds(Reply<RoundsReport> reply) = 0;
  // The key of the local HTTP server. Denied: it can't be removed while the server is on. Unsupported: this node
  // has no such server.
  virtual Expected<void> http_key(HttpKeyAction action, Reply<HttpKey> reply) = 0;
  virtual Expected<void> query_settings(Reply<std::vector<SettingEntry>> reply) = 0;
};

}  // namespace neuroshard::node
