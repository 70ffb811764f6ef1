// The node's records (core/node/records.h): the history as files for other programs, and the evaluations of checkpoints.
//
// Threads: any. The files thread exports, the reading thread answers queries.
#pragma once

#include <string>

#include "core/engine/detail/disk_reader.h"
#include "core/engine/detail/engine_context.h"
#include "core/engine/detail/file_jobs.h"
#include "core/node/records.h"

namespace neuroshard::engine::detail {

class RecordCommands final : public node::Records {
 public:
  // All outlive the object.
  RecordCommands(const EngineContext& context, FileJobs& files, DiskReader& reader)
      : context_(context), files_(files), reader_(reader) {}

  Expected<node::CommandId> export_history(const std::string& format, const std::string& path) override;
  Expected<void> query_evaluations(const node::EvaluationQuery& query,
                                   node::Reply<node::EvaluationPage> reply) override;

 private:
  Expected<node::EvaluationPage> read_evaluations(std::size_t limit);

  const EngineContext& context_;
  FileJobs& files_;
  DiskReader& reader_;
};

}  // namespace neuroshard::engine::detail
