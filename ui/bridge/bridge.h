// The one way from the windows to the core: the only code of the app that subscribes to it. Lives in the UI
// thread. No call blocks; every callback runs in the UI thread and never after its `context` is destroyed.
//
// The core's threads only put values into a bounded inbox. Snapshots, events and outcomes of commands are
// taken out by one timer, at most ten times a second, whatever the core does; answers to queries are handed
// over at once (at most max_open_queries are open).
//
// The caller of attach() keeps a reference to the node until after attach(nullptr) or the next node: the end
// of a node may block, so it must not happen on the UI thread.
#pragma once

#include <QObject>
#include <QPointer>
#include <QTimer>
#include <chrono>
#include <functional>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/base/clock.h"
#include "core/base/expected.h"
#include "core/node/node.h"

namespace neuroshard::ui {

class BridgeInbox;
class BridgeRelay;

class Bridge : public QObject {
  Q_OBJECT
 public:
  static constexpr std::chrono::milliseconds tick_period{100};
  static constexpr std::size_t max_open_commands = 64;
  static constexpr std::size_t max_open_queries = 64;

  explicit Bridge(QObject* parent = nullptr);
  // For tests: a clock that is moved by hand, and no timer: tick() is called instead.
  Bridge(const Clock& clock, QObject* parent);
  ~Bridge() override;

  // Replaces the node before; nullptr = detached. Commands and queries that are open end with Unavailable
  // (queued). may_steer: false for a node that permits this app to look only; commands are refused then.
  void attach(std::shared_ptr<node::Node> node, bool may_steer = true);
  bool attached() const { return node_ != nullptr; }
  // Whether a command can be sent now. Controls that send one are off where it can't.
  bool may_steer() const { return node_ != nullptr && may_steer_; }
  // The last one, also after the core went; null before the first.
  std::shared_ptr<const node::Snapshot> snapshot() const { return snapshot_; }
  // The age of the snapshot: zero while attached, so that an idle core's last snapshot does not count as
  // stale; grows after the core is gone.
  std::chrono::milliseconds age() const;

  using Command = std::function<Expected<node::CommandId>(node::Node&)>;
  using Done = std::function<void(const Expected<node::CommandResult>&)>;
  using Progress = std::function<void(const node::CommandProgress&)>;
  // Returns a ticket for cancel(). Refused, look only, detached or too many open: `done` gets the error, queued, never
  // inside the call. A null context means the bridge itself.
  quint64 run(QObject* context, Command command, Done done = {}, Progress progress = {});
  // Asks the core to end the command early; `done` still comes, with Cancelled. A ticket of an earlier
  // command is ignored.
  void cancel(quint64 ticket);

  template <class T>
  void query(QObject* context, std::function<Expected<void>(node::Node&, node::Reply<T>)> ask,
             std::function<void(const Expected<T>&)> done) {
    query_any(
        context,
        [ask = std::move(ask)](node::Node& node, Answer answer) {
          return ask(node, [answer = std::move(answer)](Expected<T> value) {
            answer(std::make_shared<Expected<T>>(std::move(value)));
          });
        },
        [done = std::move(done)](const void* value) { done(*static_cast<const Expected<T>*>(value)); },
        [](const Error& error) -> std::shared_ptr<void> { return std::make_shared<Expected<T>>(error); });
  }

 Q_SIGNALS:
  void snapshot_changed();
  void attached_changed(bool attached);
  // StateChanged, CheckpointsChanged, CheckpointWritten, SettingChanged, AlertRaised, AlertCleared, Ended.
  // Steps are not here: the snapshot has the last one. Between two ticks the latest of a kind (of a setting,
  // of an alert's key) is kept.
  void event_received(const neuroshard::node::Event& event);

 public Q_SLOTS:
  // Called by the timer.
  void tick();

 private:
  friend class BridgeRelay;
  using Answer = std::function<void(std::shared_ptr<void>)>;  // an Expected<T>
  struct OpenCommand {
    QPointer<QObject> context;
    node::CommandId id = 0;
    Done done;
    Progress progress;
  };
  struct OpenQuery {
    QPointer<QObject> context;
    std::function<void(const void*)> done;
    std::function<std::shared_ptr<void>(const Error&)> failure;
  };

  void query_any(QObject* context, std::function<Expected<void>(node::Node&, Answer)> ask,
                 std::function<void(const void*)> done,
                 std::function<std::shared_ptr<void>(const Error&)> failure);
  void finish_later(OpenCommand command, Expected<node::CommandResult> outcome);
  void fail_later(OpenQuery query, Error error);
  void deliver(const node::Event& event);
  void finish_command(const node::CommandDone& done);
  void show_progress(const node::CommandProgress& progress);
  void deliver_answer(quint64 ticket, const std::shared_ptr<void>& value);
  void end_all(const std::vector<node::Event>& last);
  bool take_snapshot();  // whether it is another one

  SystemClock system_clock_;
  const Clock& clock_;
  QTimer timer_;
  std::shared_ptr<node::Node> node_;
  bool may_steer_ = true;               // the attached node permits commands
  std::shared_ptr<BridgeInbox> inbox_;  // of this node; the core's threads hold it too
  std::unique_ptr<node::Subscription> subscription_;
  std::shared_ptr<const node::Snapshot> snapshot_;
  MonotonicTime seen_{};  // when the snapshot was last known to be current
  std::unordered_map<quint64, OpenCommand> commands_;
  std::unordered_map<quint64, OpenQuery> queries_;
  quint64 next_ticket_ = 1;
  std::shared_ptr<BridgeRelay> relay_;  // for answers, which come on the core's threads
};

}  // namespace neuroshard::ui

Q_DECLARE_METATYPE(neuroshard::node::Event)
