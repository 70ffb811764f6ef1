// Long work on files that needs no model: a separate thread does it during the training, one job at a time,
// with progress and cancel().
//
// Threads: accept() from any thread, everything else from the core executor. Work runs on the files thread.
// The thread that destroys the engine calls stop().
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "core/base/cancel.h"
#include "core/base/executor.h"
#include "core/checkpoint/loader.h"
#include "core/engine/detail/command_queue.h"
#include "core/engine/detail/engine_context.h"

namespace neuroshard::engine::detail {

class FileJobs {
 public:
  // The services that the work may use.
  struct Tools {
    CancelToken cancel;
    checkpoint::Progress progress;
  };
  using Work = std::function<Expected<node::CommandResult>(const Tools&)>;
  using Then = std::function<void(Expected<node::CommandResult>)>;

  explicit FileJobs(const EngineContext& context);

  // A command that is done when its work is. The progress shows `activity`: "verifying …".
  Expected<node::CommandId> accept(std::string activity, Work work);
  // For an accepted command: `then` gets the outcome on the core executor. cancel() works until then.
  void start(node::CommandId id, const std::string& activity, Work work, Then then);
  // Joins the files thread.
  void stop() { thread_.reset(); }

 private:
  struct Item {
    node::CommandId id = 0;
    std::string activity;
    CancelToken cancel;
    Work work;
    Then then;
  };
  void run(const std::shared_ptr<const Item>& item);  // files thread
  void finish(const Item& item, Expected<node::CommandResult> outcome);
  checkpoint::Progress progress_of(const Item& item);

  const EngineContext& context_;
  std::unique_ptr<Executor> thread_;
};

}  // namespace neuroshard::engine::detail
