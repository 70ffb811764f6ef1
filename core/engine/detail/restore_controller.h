// A restore: verifies the checkpoint on the files thread while training continues, then takes the place of
// the next step. Keeps the state for an undo until the undo expires (node::undo_steps, node::undo_time).
//
// Threads: restore() and undo() from any thread; the rest on the core executor.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "core/checkpoint/catalogue.h"
#include "core/engine/detail/engine_context.h"
#include "core/engine/detail/file_jobs.h"
#include "core/engine/detail/session_host.h"
#include "core/engine/detail/training_controller.h"

namespace neuroshard::engine::detail {

class RestoreController {
 public:
  RestoreController(const EngineContext& context, FileJobs& files, SessionHost& host,
                    TrainingController& training);

  // Reads the current checkpoint and the possible undo from the disk. Once, before the core executor runs
  // anything.
  void open();

  Expected<node::CommandId> restore(const std::string& name);
  Expected<node::CommandId> undo();

  // Source of jobs: the restore of a verified checkpoint, and the expiry of an undo.
  bool start_next();

 private:
  struct Verified {
    checkpoint::Entry entry;
    std::uint64_t evaluated_at = 0;  // step of its held-out loss
  };
  struct Restore {
    node::CommandId command = 0;
    bool undo = false;
    std::optional<Verified> found;  // once verified
  };
  void begin(node::CommandId id, const std::string& name, bool undo);
  Expected<Verified> verify(const std::string& name, const FileJobs::Tools& tools);  // files thread
  void on_verified(const Expected<node::CommandResult>& read, const Verified& found);
  void restore_job();
  // Compute thread. The checkpoint that an undo restores; none without a restore.
  Expected<checkpoint::Catalogue::Undo> exchange(const Restore& restore);
  void on_exchanged(const Expected<checkpoint::Catalogue::Undo>& undo);
  bool undo_is_over() const;

  const EngineContext& context_;
  FileJobs& files_;
  SessionHost& host_;
  TrainingController& training_;
  node::Snapshot& draft_;
  std::optional<Restore> restore_;
  checkpoint::Catalogue::Undo undo_;  // until when draft_.undo holds
};

}  // namespace neuroshard::engine::detail
