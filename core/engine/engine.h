// The engine: implements node::Node (core/node/node.h) in this process. Owns the data directory.
//
//   core executor    owns the state of all parts and decides: commands, jobs, events, the published snapshot
//   compute thread   holds the model: prepares it, trains a step, saves, generates text; one job at a time
//   files thread     long work on checkpoints that needs no model
//   reading thread   queries whose answer is on the disk; writes contribute.json
//   sensor thread    reads the machine's sensors, which may hang
//
// The core executor always runs between two steps, so limits, a pause and a stop take effect within one step;
// a stop also cancels the current step. Shutdown: the engine refuses new work, cancels the step, writes the
// final checkpoint, and then joins the threads, the core executor last. It leaves a sensor thread that hangs.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/base/clock.h"
#include "core/base/local_time.h"
#include "core/base/log.h"
#include "core/checkpoint/holds.h"
#include "core/config/data_directory.h"
#include "core/contribute/machine_sensors.h"
#include "core/engine/round_trainer.h"
#include "core/engine/training_session.h"
#include "core/node/member_decisions.h"
#include "core/node/network_view.h"
#include "core/node/node.h"
#include "core/node/rounds_report.h"
#include "core/platform/process/local_time.h"
#include "core/storage/file_env.h"

namespace neuroshard::engine {

// The most commands in progress, of all kinds together; the engine refuses further ones with Busy.
inline constexpr std::size_t max_open_commands = 64;

struct EngineServices {  // all outlive the engine
  storage::FileEnv& files;
  const Clock& clock;
  Logger& logger;
};

struct EngineOptions {
  std::string version;
  // Makes the session; tests put a fake one here.
  std::function<Expected<std::unique_ptr<TrainingSession>>(config::DataDirectory&, TrainingServices)>
      make_session = TrainingSession::create;
  // Contributing follows the settings, and every switch is saved there. False: it is on, regardless of the
  // settings, for training that a person starts by hand.
  bool remember_contributing = false;
  // The sensors of the contribute rules; null = every sensor of the machine is unknown. The rules hold with
  // remember_contributing only. A reading that hangs keeps the sensors after the engine's end.
  std::shared_ptr<contribute::MachineSensors> sensors;
  Duration sensor_period = std::chrono::seconds(5);  // between two readings
  LocalTimeFunction local_time = platform::local_time;
  // No training and no compute module; everything else works.
  bool safe_mode = false;
  // Alerts to raise at the start: conditions that the caller has found.
  std::vector<node::Alert> alerts;
  // Called with the settings after a changed setting was stored, on the compute thread, between two steps; must be
  // quick. Whatever it refers to outlives the engine.
  std::function<void(const config::Settings& settings)> on_settings;
  // The source of the network's view; null: the node is in no network. Outlives the engine.
  node::NetworkSource* network = nullptr;
  // Other nodes that may have cached the network's published data and may fetch this node's cache; null:
  // none. Outlives the engine.
  data::PeerSource* data_peers = nullptr;
  // Checkpoints that other nodes are fetching, which retention keeps meanwhile; null: none.
  std::shared_ptr<const checkpoint::Holds> held_checkpoints;
  // The user's limits on the disk, which the rounds' files and the checkpoints share; null: each their own.
  std::shared_ptr<storage::DiskBudget> disk;
  // Outer rounds with other nodes; null: the node trains alone.
  std::shared_ptr<RoundTrainer> rounds;
  // The pipeline of a network whose members hold parts of the model; null: this node holds all of it.
  std::shared_ptr<PipelineTrainer> pipeline;
  // The state of the rounds, for the snapshot; any thread. Null without rounds.
  std::function<node::RoundsView()> rounds_view;
  // The details, for query_rounds(): replies once, on any thread; must only enqueue.
  std::function<void(node::Reply<node::RoundsReport>)> rounds_report;
  // About the members of a chain; null: there is none.
  std::shared_ptr<node::MemberDecisions> decisions;
  // The state of the local HTTP server, for the snapshot and the alert "http"; any thread. Null: there is none.
  std::function<node::HttpView()> http_view;
  // Node::http_key(): replies once, on any thread; must only enqueue. Null: there is no server.
  std::function<void(node::HttpKeyAction, node::Reply<node::HttpKey>)> http_key;
  // Conditions of the rounds and of the network that need a person. The engine raises them as alerts, and clears alerts that are
  // no longer reported. Keys begin with "rounds_".
  std::function<std::vector<node::Alert>()> rounds_alerts;
  // The first wait of a training whose text can't be fetched; it doubles with each try, up to a minute.
  Duration text_retry = std::chrono::seconds(5);
  // The period at which the engine checks rules, resident memory and free space.
  Duration resource_period = std::chrono::seconds(2);
};

class Engine : public node::Node {
 public:
  // Takes the open directory. Idle until start_training.
  static std::unique_ptr<Engine> start(std::unique_ptr<config::DataDirectory> directory,
                                       EngineServices services, EngineOptions options);
  // As request_shutdown(), then waits for it.
  ~Engine() override = default;
};

}  // namespace neuroshard::engine
