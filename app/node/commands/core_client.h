// The running core of a data directory, for commands that show or control it.
#pragma once

#include <functional>
#include <memory>

#include "app/node/command.h"
#include "core/control/service.h"
#include "core/platform/process/process_identity.h"
#include "core/runtime/event_queue.h"

namespace neuroshard::app {

// Threads: the command's.
class CoreClient {
 public:
  // Unavailable: no core runs there, and how to start one. Busy: another process than `run` has the
  // directory. Denied, Unsupported: control.json is not ours, or the core is of another version.
  static Expected<std::unique_ptr<CoreClient>> attach(CommandContext& context);

  control::RemoteNode& node() { return *node_; }
  platform::ProcessIdentity process() const { return process_; }

  // The same where there may be none: null when no core serves the directory, which then can be opened.
  static Expected<std::unique_ptr<CoreClient>> find(CommandContext& context);

  using Send = std::function<Expected<node::CommandId>(node::Node&)>;
  // Sends a command and waits for its outcome; Ctrl-C ends the waiting, not the command.
  Expected<void> command(const Send& send);
  // The same for a long command, with its result. `label` stands before its progress, and Ctrl-C cancels it.
  // show: may be null; called again and again during the wait, for example to print text that has arrived.
  Expected<node::CommandResult> run(const Send& send, const std::string& label,
                                    const std::function<void()>& show = {});
  // Waits a moment for the core. False: Ctrl-C.
  bool pause();
  // Sends a query and waits for the answer.
  template <class T>
  Expected<T> ask(const std::function<Expected<void>(node::Node&, node::Reply<T>)>& question) {
    auto answer = std::make_shared<std::optional<Expected<T>>>();
    auto ready = std::make_shared<StopFlag>();
    NS_RETURN_IF_ERROR(question(*node_, [answer, ready](Expected<T> value) {
      *answer = std::move(value);
      ready->set();
    }));
    NS_RETURN_IF_ERROR(wait(*ready));
    return std::move(**answer);
  }

 private:
  // Set once by a thread of the node.
  class StopFlag {
   public:
    void set() {
      {
        std::lock_guard lock(mutex_);
        set_ = true;
      }
      changed_.notify_all();
    }
    bool wait(Duration limit) {
      std::unique_lock lock(mutex_);
      return changed_.wait_for(lock, limit, [this] { return set_; });
    }

   private:
    std::mutex mutex_;
    std::condition_variable changed_;
    bool set_ = false;
  };

  CoreClient(CommandContext& context, platform::ProcessIdentity process,
             std::unique_ptr<control::RemoteNode> node)
      : context_(context), process_(process), node_(std::move(node)), events_(*node_) {}
  // Null, with the reason, where no core serves.
  static Expected<std::unique_ptr<CoreClient>> look_for(CommandContext& context, Error* reason);
  Expected<void> wait(StopFlag& flag);

  CommandContext& context_;
  platform::ProcessIdentity process_;
  std::unique_ptr<control::RemoteNode> node_;
  runtime::EventQueue events_;
};

}  // namespace neuroshard::app
