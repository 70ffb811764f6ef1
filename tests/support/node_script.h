// The test's side of a FakeNode: which snapshot it publishes, which events it emits, and whether it answers
// commands and queries at once, later, or never. Threads: any.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "core/node/node.h"
#include "core/node/subscribers.h"

namespace neuroshard::testing {

class FakeRecords;  // fake_node.h

class NodeScript {
 public:
  NodeScript();

  // The change becomes the next snapshot, with the next version.
  void publish(const std::function<void(node::Snapshot&)>& change);
  void emit(const node::Event& event);

  // Commands as text: "contribute off", "snooze 5", "set cpu_threads 2", "verify NAME".
  std::vector<std::string> commands() const;
  // The threads of commands, queries and subscriptions.
  std::set<std::thread::id> callers() const;
  // Refused at once with this error from now on (empty message: accepted again).
  void refuse(Error error);
  // Accepted but not done until finish_commands() or finish().
  void hold_commands();
  void finish_commands(std::optional<Error> error = std::nullopt);
  // The newest held command whose text begins so; 0: none.
  node::CommandId held(const std::string& beginning) const;
  // Of a held command: its progress, the text of a generate(), its outcome.
  void progress(node::CommandId id, const std::string& activity, std::uint64_t done, std::uint64_t total);
  void say(node::CommandId id, const std::string& text);
  void finish(node::CommandId id, Expected<node::CommandResult> outcome = node::CommandResult{});

  // Queries by name: "series loss", "logs", "slots".
  std::vector<std::string> queries() const;
  // Not answered until release_queries().
  void hold_queries();
  void release_queries();
  // Every answer is this error from now on (empty message: answered again).
  void fail_queries(Error error);

 protected:
  ~NodeScript() = default;

  // The effect of a command that is not held; gives its result.
  using Effect = std::function<node::CommandResult()>;
  Expected<node::CommandId> accept(std::string text, std::function<void(node::Snapshot&)> change = {},
                                   Effect effect = {}, node::TextHandler on_text = {});
  template <class T>
  Expected<void> answer(std::string name, node::Reply<T> reply, Expected<T> value);
  std::shared_ptr<const node::Snapshot> published() const;
  std::unique_ptr<node::Subscription> add_subscriber(node::EventHandler on_event);
  void note_command(std::string text);

 private:
  friend class FakeRecords;  // a part of the node, with commands and queries of its own

  struct Held {
    node::CommandId id = 0;
    std::string text;
    node::TextHandler on_text;
  };

  mutable std::mutex mutex_;
  std::shared_ptr<const node::Snapshot> published_;
  std::vector<std::string> commands_, queries_;
  std::set<std::thread::id> callers_;
  std::vector<Held> held_;
  std::vector<std::function<void()>> waiting_answers_;
  std::optional<Error> refusal_, query_failure_;
  bool hold_ = false, hold_queries_ = false;
  node::CommandId next_ = 1;
  std::shared_ptr<node::Subscribers> subscribers_ = std::make_shared<node::Subscribers>();
};

template <class T>
Expected<void> NodeScript::answer(std::string name, node::Reply<T> reply, Expected<T> value) {
  {
    std::lock_guard lock(mutex_);
    callers_.insert(std::this_thread::get_id());
    queries_.push_back(std::move(name));
    if (query_failure_) value = *query_failure_;
    if (hold_queries_) {
      waiting_answers_.push_back([reply = std::move(reply), value = std::move(value)] { reply(value); });
      return {};
    }
  }
  reply(std::move(value));
  return {};
}

}  // namespace neuroshard::testing
