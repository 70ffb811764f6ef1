// Commands and queries on checkpoints that need no model: they read and write files during the training. For
// the restore, see restore_controller.h.
//
// Threads: any. Work runs on the files thread (file_jobs.h), queries on the reading thread; outcomes and
// replies run on the core executor.
#pragma once

#include <string>

#include "core/engine/detail/disk_reader.h"
#include "core/engine/detail/engine_context.h"
#include "core/engine/detail/file_jobs.h"
#include "core/export/model_export.h"
#include "core/node/queries.h"

namespace neuroshard::engine::detail {

class CheckpointCommands {
 public:
  CheckpointCommands(const EngineContext& context, FileJobs& files, DiskReader& reader);

  // As in core/node/node.h.
  Expected<node::CommandId> verify(const std::string& name);
  Expected<node::CommandId> compare(const std::string& first, const std::string& second);
  Expected<node::CommandId> pin(const std::string& name, bool pinned);
  Expected<node::CommandId> remove(const std::string& name);
  Expected<node::CommandId> prune(const node::PrunePolicy& policy);
  Expected<node::CommandId> export_to(const std::string& name, const std::string& format,
                                      const std::string& path);
  Expected<node::CommandId> import_from(const std::string& path);
  Expected<void> query(const node::CheckpointQuery& query, node::Reply<node::CheckpointPage> reply);
  Expected<void> preview_prune(const node::PrunePolicy& policy, node::Reply<node::PrunePreview> reply);

 private:
  // Files thread.
  Expected<node::CommandResult> do_verify(const std::string& name, const FileJobs::Tools& tools);
  Expected<node::CommandResult> do_compare(const std::string& first, const std::string& second,
                                           const FileJobs::Tools& tools);
  Expected<node::CommandResult> do_pin(const std::string& name, bool pinned);
  Expected<node::CommandResult> do_remove(const std::string& name);
  Expected<node::CommandResult> do_prune(const node::PrunePolicy& policy, const FileJobs::Tools& tools);
  Expected<node::CommandResult> do_export(const std::string& name, exporting::ExportFormat format,
                                          const std::string& path, const FileJobs::Tools& tools);
  Expected<node::CommandResult> do_import(const std::string& path, const FileJobs::Tools& tools);
  void report_change();
  // Reading thread.
  Expected<node::CheckpointPage> read_page(const node::CheckpointQuery& query);
  Expected<node::PrunePreview> read_preview(const node::PrunePolicy& policy);

  const EngineContext& context_;
  FileJobs& files_;
  DiskReader& reader_;
};

// InvalidArgument: relative, which would mean nothing to another process, or too long.
Expected<void> check_path(const std::string& path);
// InvalidArgument: empty or too long.
Expected<void> check_checkpoint_name(const std::string& name);
// Corrupt: it is damaged. InvalidArgument: it belongs to another network.
Expected<void> check_checkpoint_network(const checkpoint::Entry& entry, const Hash256& network);

}  // namespace neuroshard::engine::detail
