#include "ui/bridge/bridge.h"

#include <algorithm>
#include <mutex>
#include <optional>
#include <vector>

#include "ui/bridge/bridge_inbox.h"

namespace neuroshard::ui {

// Carries closures of the core's threads to the bridge as long as it lives.
class BridgeRelay {
 public:
  explicit BridgeRelay(Bridge* bridge) : bridge_(bridge) {}
  void answer(quint64 ticket, std::shared_ptr<void> value) {
    std::lock_guard lock(mutex_);
    if (bridge_ == nullptr) return;
    QMetaObject::invokeMethod(
        bridge_,
        [bridge = bridge_, ticket, value = std::move(value)] { bridge->deliver_answer(ticket, value); },
        Qt::QueuedConnection);
  }
  void close() {
    std::lock_guard lock(mutex_);
    bridge_ = nullptr;
  }

 private:
  std::mutex mutex_;
  Bridge* bridge_;
};

namespace {

Error detached() {
  return make_error(ErrorCode::Unavailable,
                    "there is no connection to the core; see the bar at the top of the window");
}

Error look_only() {
  return make_error(ErrorCode::Denied,
                    "this invitation permits to look, not to change anything: ask the owner of the node for "
                    "another one (neuroshardd control invite --scope steer)");
}

Error core_went() {
  return make_error(ErrorCode::Unavailable,
                    "the connection to the core ended; it is not known whether this was done");
}

Error too_many(const std::string& what) {
  return make_error(ErrorCode::Busy, "too many " + what + "; try again in a moment");
}

}  // namespace

Bridge::Bridge(QObject* parent)
    : QObject(parent), clock_(system_clock_), relay_(std::make_shared<BridgeRelay>(this)) {
  qRegisterMetaType<node::Event>();
  connect(&timer_, &QTimer::timeout, this, &Bridge::tick);
  timer_.setInterval(tick_period);
  timer_.setTimerType(Qt::CoarseTimer);
  seen_ = clock_.monotonic_now();
}

Bridge::Bridge(const Clock& clock, QObject* parent)
    : QObject(parent), clock_(clock), relay_(std::make_shared<BridgeRelay>(this)) {
  qRegisterMetaType<node::Event>();
  seen_ = clock_.monotonic_now();
}

Bridge::~Bridge() {
  relay_->close();
  subscription_.reset();
}

void Bridge::attach(std::shared_ptr<node::Node> node, bool may_steer) {
  if (node == node_ && may_steer == may_steer_) return;
  const bool was = attached();
  bool changed = false;
  subscription_.reset();
  if (inbox_) {
    changed = take_snapshot();
    // The last events of the node are kept: the outcome of a command, its last state.
    end_all(inbox_->take());
    inbox_.reset();
  }
  if (was) seen_ = clock_.monotonic_now();
  node_ = std::move(node);
  may_steer_ = may_steer;
  if (node_) {
    inbox_ = std::make_shared<BridgeInbox>();
    subscription_ = node_->subscribe([inbox = inbox_](const node::Event& event) { inbox->put(event); });
    changed = take_snapshot() || changed;
    if (timer_.interval() > 0) timer_.start();
  } else {
    timer_.stop();
  }
  // A receiver of the signal may attach another node: nothing is touched after this.
  const QPointer<Bridge> self(this);
  if (was != attached()) Q_EMIT attached_changed(!was);
  if (self && changed) Q_EMIT snapshot_changed();
}

std::chrono::milliseconds Bridge::age() const {
  if (attached()) return std::chrono::milliseconds(0);
  return std::chrono::duration_cast<std::chrono::milliseconds>(clock_.monotonic_now() - seen_);
}

bool Bridge::take_snapshot() {
  auto latest = node_->snapshot();
  if (latest == snapshot_) return false;
  snapshot_ = std::move(latest);
  return true;
}

void Bridge::tick() {
  if (!node_) return;
  const QPointer<Bridge> self(this);
  const auto inbox = inbox_;
  const std::vector<node::Event> events = inbox->take();
  // The snapshot after the events were taken: never older than they are.
  if (take_snapshot()) Q_EMIT snapshot_changed();
  for (const node::Event& event : events) {
    if (!self || inbox_ != inbox) return;  // a callback attached another node: end_all() told the rest
    deliver(event);
  }
}

void Bridge::deliver(const node::Event& event) {
  if (const auto* done = std::get_if<node::CommandDone>(&event)) return finish_command(*done);
  if (const auto* progress = std::get_if<node::CommandProgress>(&event)) return show_progress(*progress);
  Q_EMIT event_received(event);
}

quint64 Bridge::run(QObject* context, Command command, Done done, Progress progress) {
  const quint64 ticket = next_ticket_++;
  OpenCommand open{context != nullptr ? context : this, 0, std::move(done), std::move(progress)};
  if (!node_) {
    finish_later(std::move(open), detached());
    return ticket;
  }
  if (!may_steer_) {
    finish_later(std::move(open), look_only());
    return ticket;
  }
  if (commands_.size() >= max_open_commands) {
    finish_later(std::move(open), too_many("commands are under way"));
    return ticket;
  }
  inbox_->begin_call();
  const Expected<node::CommandId> accepted = command(*node_);
  inbox_->end_call(accepted.ok() ? std::optional(*accepted) : std::nullopt);
  if (!accepted.ok()) {
    finish_later(std::move(open), accepted.error());
    return ticket;
  }
  open.id = *accepted;
  commands_.emplace(ticket, std::move(open));
  return ticket;
}

void Bridge::cancel(quint64 ticket) {
  const auto at = commands_.find(ticket);
  if (at == commands_.end() || !node_) return;
  static_cast<void>(node_->cancel(at->second.id).ok());  // a failure shows in how the command ends
}

void Bridge::finish_later(OpenCommand command, Expected<node::CommandResult> outcome) {
  QMetaObject::invokeMethod(
      this,
      [command = std::move(command), outcome = std::move(outcome)] {
        if (command.context && command.done) command.done(outcome);
      },
      Qt::QueuedConnection);
}

void Bridge::fail_later(OpenQuery query, Error error) {
  QMetaObject::invokeMethod(
      this,
      [query = std::move(query), error = std::move(error)] {
        if (query.context) query.done(query.failure(error).get());
      },
      Qt::QueuedConnection);
}

void Bridge::finish_command(const node::CommandDone& done) {
  for (auto at = commands_.begin(); at != commands_.end(); ++at) {
    if (at->second.id != done.id) continue;
    const OpenCommand command = std::move(at->second);
    commands_.erase(at);
    if (!command.context || !command.done) return;
    if (done.error) return command.done(*done.error);
    return command.done(done.result);
  }
}

void Bridge::show_progress(const node::CommandProgress& progress) {
  for (const auto& [ticket, command] : commands_) {
    if (command.id != progress.id) continue;
    if (!command.context || !command.progress) return;
    const Progress show = command.progress;  // it may end the command
    return show(progress);
  }
}

void Bridge::query_any(QObject* context, std::function<Expected<void>(node::Node&, Answer)> ask,
                       std::function<void(const void*)> done,
                       std::function<std::shared_ptr<void>(const Error&)> failure) {
  const quint64 ticket = next_ticket_++;
  const auto answer = [relay = relay_, ticket](std::shared_ptr<void> value) {
    relay->answer(ticket, std::move(value));
  };
  OpenQuery open{context != nullptr ? context : this, std::move(done), std::move(failure)};
  if (!node_) return fail_later(std::move(open), detached());
  if (queries_.size() >= max_open_queries) return fail_later(std::move(open), too_many("questions are open"));
  const auto make_failure = open.failure;
  queries_[ticket] = std::move(open);
  const Expected<void> asked = ask(*node_, answer);
  if (!asked.ok()) answer(make_failure(asked.error()));
}

void Bridge::deliver_answer(quint64 ticket, const std::shared_ptr<void>& value) {
  const auto at = queries_.find(ticket);
  if (at == queries_.end()) return;  // ended with the node before
  const OpenQuery query = std::move(at->second);
  queries_.erase(at);
  if (query.context) query.done(value.get());
}

void Bridge::end_all(const std::vector<node::Event>& last) {
  for (const node::Event& event : last) {
    if (const auto* done = std::get_if<node::CommandDone>(&event)) {
      const auto at = std::find_if(commands_.begin(), commands_.end(),
                                   [done](const auto& open) { return open.second.id == done->id; });
      if (at == commands_.end()) continue;
      const auto outcome = done->error ? Expected<node::CommandResult>(*done->error)
                                       : Expected<node::CommandResult>(done->result);
      finish_later(std::move(at->second), outcome);
      commands_.erase(at);
    } else if (!std::holds_alternative<node::CommandProgress>(event)) {
      QMetaObject::invokeMethod(
          this, [this, event] { Q_EMIT event_received(event); }, Qt::QueuedConnection);
    }
  }
  for (auto& [ticket, command] : std::exchange(commands_, {})) finish_later(command, core_went());
  for (auto& [ticket, query] : std::exchange(queries_, {})) fail_later(query, core_went());
}

}  // namespace neuroshard::ui
