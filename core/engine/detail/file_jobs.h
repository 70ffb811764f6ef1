// Long work on files that needs no model: a thread of its own does it beside the training, one piece of work
// at a time, with progress and cancel().
//
// Threads: the core executor calls everything but accept(), which is for any thread. Work runs on the files
// thread. stop() is called by the thread that destroys the engine.
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

  // A command that is done when its work is. `activity` is shown with the progress: "verifying …".
  Expected<node::CommandId> accept(std::string activity, Work work);
  // For a command that was accepted: `then` gets the outcome on the core executor. cancel() works until then.
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
