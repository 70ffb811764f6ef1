// Series and log records of the training history, for the queries of core/node.
//
// Threads: any. The reading thread reads the history; replies run on the core executor.
#pragma once

#include "core/engine/detail/disk_reader.h"
#include "core/engine/training_history.h"
#include "core/node/queries.h"

namespace neuroshard::engine::detail {

class HistoryQueries {
 public:
  // Both outlive the object.
  HistoryQueries(TrainingHistory& history, DiskReader& reader) : history_(history), reader_(reader) {}

  Expected<void> series(const node::SeriesQuery& query, node::Reply<node::Series> reply);
  Expected<void> logs(const node::LogQuery& query, node::Reply<node::LogPage> reply);

 private:
  Expected<node::Series> read_series(const node::SeriesQuery& query);
  Expected<node::LogPage> read_logs(const node::LogQuery& query);

  TrainingHistory& history_;
  DiskReader& reader_;
};

// Checks a query's page size.  InvalidArgument: it is not 1 … most.
Expected<void> check_limit(std::size_t limit, std::size_t most);

}  // namespace neuroshard::engine::detail
