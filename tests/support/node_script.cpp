#include "tests/support/node_script.h"

namespace neuroshard::testing {

NodeScript::NodeScript() {
  node::Snapshot first;
  first.version = 1;
  first.state = node::RunState::Idle;
  first.program.version = "fake";
  first.program.pid = 4321;
  published_ = std::make_shared<const node::Snapshot>(std::move(first));
}

void NodeScript::publish(const std::function<void(node::Snapshot&)>& change) {
  std::lock_guard lock(mutex_);
  node::Snapshot next = *published_;
  if (change) change(next);
  next.version = published_->version + 1;
  node::bound(next);
  published_ = std::make_shared<const node::Snapshot>(std::move(next));
}

void NodeScript::emit(const node::Event& event) {
  subscribers_->emit(event);
}

std::vector<std::string> NodeScript::commands() const {
  std::lock_guard lock(mutex_);
  return commands_;
}

std::set<std::thread::id> NodeScript::callers() const {
  std::lock_guard lock(mutex_);
  return callers_;
}

void NodeScript::refuse(Error error) {
  std::lock_guard lock(mutex_);
  refusal_.reset();
  if (!error.message.empty()) refusal_ = std::move(error);
}

void NodeScript::hold_commands() {
  std::lock_guard lock(mutex_);
  hold_ = true;
}

void NodeScript::finish_commands(std::optional<Error> error) {
  std::vector<Held> held;
  {
    std::lock_guard lock(mutex_);
    held.swap(held_);
    hold_ = false;
  }
  for (const Held& command : held) emit(node::CommandDone{command.id, error, {}});
}

node::CommandId NodeScript::held(const std::string& beginning) const {
  std::lock_guard lock(mutex_);
  for (auto at = held_.rbegin(); at != held_.rend(); ++at)
    if (at->text.rfind(beginning, 0) == 0) return at->id;
  return 0;
}

void NodeScript::progress(node::CommandId id, const std::string& activity, std::uint64_t done,
                          std::uint64_t total) {
  emit(node::CommandProgress{id, activity, done, total});
}

void NodeScript::say(node::CommandId id, const std::string& piece) {
  node::TextHandler on_text;
  {
    std::lock_guard lock(mutex_);
    for (const Held& command : held_)
      if (command.id == id) on_text = command.on_text;
  }
  if (on_text) on_text({piece, {}, false});
}

void NodeScript::finish(node::CommandId id, Expected<node::CommandResult> outcome) {
  {
    std::lock_guard lock(mutex_);
    if (std::erase_if(held_, [id](const Held& command) { return command.id == id; }) == 0) return;
  }
  node::CommandDone done{id, std::nullopt, {}};
  if (outcome.ok()) {
    done.result = *outcome;
  } else {
    done.error = outcome.error();
  }
  emit(done);
}

std::vector<std::string> NodeScript::queries() const {
  std::lock_guard lock(mutex_);
  return queries_;
}

void NodeScript::hold_queries() {
  std::lock_guard lock(mutex_);
  hold_queries_ = true;
}

void NodeScript::release_queries() {
  std::vector<std::function<void()>> waiting;
  {
    std::lock_guard lock(mutex_);
    waiting.swap(waiting_answers_);
    hold_queries_ = false;
  }
  for (const auto& answer : waiting) answer();
}

void NodeScript::fail_queries(Error error) {
  std::lock_guard lock(mutex_);
  query_failure_.reset();
  if (!error.message.empty()) query_failure_ = std::move(error);
}

Expected<node::CommandId> NodeScript::accept(std::string text, std::function<void(node::Snapshot&)> change,
                                             Effect effect, node::TextHandler on_text) {
  node::CommandId id = 0;
  {
    std::lock_guard lock(mutex_);
    callers_.insert(std::this_thread::get_id());
    if (refusal_) return *refusal_;
    commands_.push_back(text);
    id = next_++;
    if (hold_) {
      held_.push_back({id, std::move(text), std::move(on_text)});
      return id;
    }
  }
  node::CommandResult result;
  if (effect) result = effect();
  publish(change);
  emit(node::CommandDone{id, std::nullopt, std::move(result)});
  return id;
}

std::shared_ptr<const node::Snapshot> NodeScript::published() const {
  std::lock_guard lock(mutex_);
  return published_;
}

std::unique_ptr<node::Subscription> NodeScript::add_subscriber(node::EventHandler on_event) {
  {
    std::lock_guard lock(mutex_);
    callers_.insert(std::this_thread::get_id());
  }
  return subscribers_->add(std::move(on_event));
}

void NodeScript::note_command(std::string text) {
  std::lock_guard lock(mutex_);
  commands_.push_back(std::move(text));
}

}  // namespace neuroshard::testing
