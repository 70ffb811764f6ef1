// The checkpoints of a training session: continues from the current one, saves by policy during the training,
// deletes by the retention rules. A full or read-only disk raises an alert; training continues and the
// next save tries again.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "core/base/clock.h"
#include "core/base/executor.h"
#include "core/base/expected.h"
#include "core/checkpoint/async_writer.h"
#include "core/checkpoint/catalogue.h"
#include "core/checkpoint/loader.h"
#include "core/checkpoint/retention.h"
#include "core/checkpoint/save_policy.h"
#include "core/compute/stage.h"
#include "core/config/data_directory.h"
#include "core/engine/trainer_state.h"
#include "core/engine/training_session.h"

namespace neuroshard::engine {

// The version of a network's first shape; it increases when the network grows.
inline constexpr std::uint32_t first_architecture_version = 1;

// Reads a checkpoint into the stage: the one that *name names, else the current one, whose name it puts there; nothing
// when there is none yet. optimizer: moments and
// balancing biases too. Skips damaged newer checkpoints and names them in *alerts. Errors:
// NotFound (no checkpoint of that name), InvalidArgument (of another network or shape), Corrupt (no existing checkpoint can be loaded), Io.
Expected<std::optional<checkpoint::Manifest>> load_current_checkpoint(
    config::DataDirectory& directory, TrainingServices services, const compute::ModelShape& shape,
    compute::Stage& stage, bool optimizer, const checkpoint::Progress& progress, std::string* name,
    std::vector<SessionAlert>* alerts);

// Threads: the session's. A separate thread writes the files.
class TrainingCheckpoints {
 public:
  // copy_allowed: the memory plan has room for a copy of weights and moments; else it is in the spool.
  // resumed: the manifest that
  // training continues from. local_data_bytes counts against the user's disk limit.
  struct Options {
    bool copy_allowed = true;
    std::optional<checkpoint::Manifest> resumed;
    std::string resumed_name;
    std::uint64_t local_data_bytes = 0;
  };
  // The stage outlives it.
  static Expected<std::unique_ptr<TrainingCheckpoints>> open(config::DataDirectory& directory,
                                                             TrainingServices services,
                                                             const compute::ModelShape& shape,
                                                             compute::Stage& stage, const Options& options);
  ~TrainingCheckpoints();

  // By the current settings.
  bool due(const TrainerState& state);
  bool due_after_sync(const TrainerState& state);
  // Starts a save of the present tensors with `state`; false when an earlier save is still being written or
  // this one could not start.
  bool save(const TrainerState& state);
  bool in_flight() const;  // a save is still being written
  // Before every update of the stage's weights and moments: waits until a save in progress has its copy of
  // them.
  void before_update();
  // Saves and returns when the checkpoint is on the disk.
  Expected<std::string> save_now(const TrainerState& state);
  // Waits for a save in progress, then returns whether the newest checkpoint is of this step.
  bool up_to_date(std::uint64_t step);

  // The writer's results since the last call: failures, and the name of a completed checkpoint.
  struct News {
    std::vector<SessionAlert> alerts;
    std::string saved;
  };
  News collect();

 private:
  // State shared by the session and the io thread.
  struct Inbox {
    std::mutex mutex;
    News news;
    std::optional<std::uint64_t> saved_step;
    std::uint64_t written = 0;              // bytes, by saves that ended since follow_settings() looked
    checkpoint::RetentionPolicy retention;  // as the settings were at the last save
  };
  TrainingCheckpoints(config::DataDirectory& directory, TrainingServices services, compute::Stage& stage,
                      const Options& options);
  Expected<void> start(const compute::ModelShape& shape, const Options& options);
  checkpoint::AsyncWriter::Callbacks callbacks();
  checkpoint::SavePolicyOptions save_options() const;
  void follow_settings();
  checkpoint::RetentionPolicy retention() const;
  checkpoint::Manifest describe(const TrainerState& state);
  checkpoint::TensorView view();

  config::DataDirectory& directory_;
  TrainingServices services_;
  compute::Stage& stage_;
  compute::ModelShape shape_;
  bool copy_allowed_;
  bool wanted_ = false;  // a save was due while another was being written
  std::uint64_t local_data_bytes_ = 0;
  std::uint64_t save_bytes_ = 0;
  std::uint64_t last_saved_step_ = 0;
  std::vector<float> router_bias_;
  std::shared_ptr<Inbox> inbox_ = std::make_shared<Inbox>();
  std::optional<checkpoint::SavePolicy> policy_;
  std::optional<checkpoint::Writer> writer_;
  std::unique_ptr<Executor> io_;
  std::unique_ptr<checkpoint::AsyncWriter> async_;  // destroyed before io_: its destructor waits
};

}  // namespace neuroshard::engine
