// Shows the fetch of a checkpoint: a live line for the file that arrives, a note and a JSON line for each
// file.
#pragma once

#include <optional>

#include "app/node/command.h"
#include "app/node/output/progress.h"
#include "core/runtime/checkpoint_fetch.h"

namespace neuroshard::app {

// Threads: the command's. Outlives the fetch that it observes.
class FetchProgress {
 public:
  explicit FetchProgress(CommandContext& context);
  FetchProgress(const FetchProgress&) = delete;
  FetchProgress& operator=(const FetchProgress&) = delete;

  const runtime::FetchObserver& observer() const { return observer_; }

 private:
  void show(const runtime::FetchObserver::File& file);

  CommandContext& context_;
  std::optional<ProgressLine> line_;
  runtime::FetchObserver observer_;
};

}  // namespace neuroshard::app
