// The parts of a prepared training session, in the order in which ModelSetup makes them. The session and
// its helpers use them.
//
// Threads: the compute thread. Members are destroyed in reverse order: a checkpoint may still be reading the
// stage's memory, and the loader reads from the dataset.
#pragma once

#include <memory>
#include <optional>

#include "core/base/executor.h"
#include "core/base/expected.h"
#include "core/compute/module.h"
#include "core/data/dataset.h"
#include "core/data/held_out.h"
#include "core/data/loader.h"
#include "core/engine/training_checkpoints.h"
#include "core/engine/training_history.h"
#include "core/engine/training_memory.h"
#include "core/engine/training_session.h"
#include "core/train/inner_loop.h"
#include "core/train/schedule.h"

namespace neuroshard::engine::detail {

struct SessionParts {
  SessionParts(config::DataDirectory& directory, TrainingServices services)
      : directory(directory), services(std::move(services)) {}
  SessionParts(const SessionParts&) = delete;
  SessionParts& operator=(const SessionParts&) = delete;

  bool trains() const { return mode == SessionMode::Train; }
  bool is_part() const {
    return !(info.range == compute::whole_range(info.shape));
  }  // once the model is made
  // The state that a checkpoint would record now.
  TrainerState state_to_save() const;
  // Notes whether the source of the text did not answer, or has not given all of it yet.
  template <class T>
  void note_text(const Expected<T>& read) {
    text_away =
        !read.ok() && (read.error().code == ErrorCode::Unavailable ||
                       read.error().code == ErrorCode::Timeout || read.error().code == ErrorCode::Busy);
  }
  // Writes to the log and the history. Warnings and errors go into the report as well.
  void tell(const SessionAlert& alert, StepReport* report);

  config::DataDirectory& directory;
  const TrainingServices services;
  SessionMode mode = SessionMode::Train;
  SessionInfo info;
  TrainerState state;
  std::uint64_t fresh_at = 0;  // the step after which the moments were zero
  train::Schedule schedule;

  std::shared_ptr<TrainingHistory> history;
  bool text_away = false;  // by note_text()
  std::unique_ptr<data::Dataset> dataset;
  std::unique_ptr<Executor> fetcher;           // fetches shards beside the training
  std::unique_ptr<Executor> held_out_fetcher;  // those of held-out text; training text never waits for it
  std::unique_ptr<data::Loader> loader;
  std::optional<data::HeldOut> held_out;  // the part that is evaluated at intervals
  std::optional<data::HeldOutFetch> held_out_fetch;

  compute::LoadedModule module;
  TrainingMemory memory;
  compute::StagePtr stage;
  std::optional<train::InnerLoop> loop;  // of a part of a model: its number of sequences only
  std::unique_ptr<TrainingCheckpoints> checkpoints;
};

compute::Precision precision_of(const compute::ModuleInfo& info);
// Of the stage that the session trains, or generates with.
compute::StageSpec stage_spec(const SessionParts& parts);

}  // namespace neuroshard::engine::detail
