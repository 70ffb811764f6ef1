// State shared by the parts of the engine: the injected services and the parts that all others use.
// EngineNode makes all of it before the first part and destroys it after the last one.
#pragma once

#include <memory>

#include "core/base/executor.h"
#include "core/checkpoint/catalogue.h"
#include "core/config/data_directory.h"
#include "core/engine/engine.h"
#include "core/engine/training_history.h"
#include "core/net/mailbox.h"

namespace neuroshard::engine::detail {

class CommandQueue;
class JobScheduler;
class SnapshotPublisher;

struct EngineContext {
  // Its settings change on the compute thread only; everything else in it is constant. Threads: any.
  config::DataDirectory& directory;
  const EngineServices& services;
  const EngineOptions& options;
  std::shared_ptr<TrainingHistory> history;  // of all sessions, one after the other
  // Owns the state of all parts. It refuses tasks when its queue is full.
  Executor& core;
  // To the same executor, for a result that must arrive: it keeps tasks that the executor refuses and posts
  // them again.
  net::Mailbox& arrivals;
  SnapshotPublisher& publisher;
  JobScheduler& jobs;
  CommandQueue& commands;

  checkpoint::Catalogue catalogue() const {
    return checkpoint::Catalogue(services.files, directory.checkpoints_path());
  }
};

}  // namespace neuroshard::engine::detail
