// Keeps a core running on the chosen data directory. It attaches to a running core, or starts one. After a
// crash it restarts the core with growing delays, and in safe mode after three crashes in ten minutes. It
// stops only a core that it started. A pure state machine over a link and a launcher: time is moved by
// tick().
//
// Threads: ui.
#pragma once

#include <QObject>
#include <QString>
#include <functional>
#include <memory>
#include <vector>

#include "app/gui/core_launcher.h"
#include "app/gui/core_link.h"
#include "core/base/clock.h"

namespace neuroshard::gui {

struct SupervisorLimits {
  Duration first_wait = std::chrono::seconds(1);  // before the first restart; doubles
  Duration last_wait = std::chrono::seconds(60);
  Duration crash_window = std::chrono::minutes(10);
  std::size_t crashes_to_safe_mode = 3;  // within the window
  Duration stop_limit = std::chrono::seconds(15);
  Duration start_limit = std::chrono::seconds(60);  // until it answers
};

enum class CorePhase {
  Closed,    // no data directory is open
  Looking,   // whether a core runs already
  Starting,  // ours, until it answers
  Running,
  Waiting,       // before it is started again
  Stopped,       // it ended cleanly, or another program started it
  Failed,        // it does not start, or refuses this program: `error`
  WrongVersion,  // another major version: `error` says which side to upgrade
  Stopping,      // we asked it to
};

// The state of the core, for the window.
struct CoreStatus {
  CorePhase phase = CorePhase::Closed;
  bool ours = false;        // this app started it
  bool remote = false;      // on another machine
  bool may_steer = true;    // false: its owner permits to look only
  bool safe_mode = false;   // was started so
  bool crashed = false;     // the last end was a crash
  std::size_t crashes = 0;  // within the window; those before a start in safe mode stay
  bool dismissed = false;   // the user put the message about these crashes away
  Error error;              // with Failed and WrongVersion, and of the last crash
  QString said;             // what it wrote last, for the details
  Duration wait{0};         // with Waiting: until the next start
  platform::ProcessIdentity process;
};

class CoreSupervisor final : public QObject {
  Q_OBJECT
 public:
  // All outlive this.
  CoreSupervisor(CoreLink& link, CoreLauncher& launcher, const Clock& clock, SupervisorLimits limits = {},
                 QObject* parent = nullptr);

  // The core that an earlier run of this app started, if it is still the one.
  void remember(const platform::ProcessIdentity& started) { started_ = started; }

  // Asked before each start: whether the data is there. Answers once, later or at once; on "no" nothing is
  // started and the supervisor closes. Without it everything may start.
  using Gate = std::function<void(std::function<void(bool)>)>;
  void set_gate(Gate gate) { gate_ = std::move(gate); }

  void open(const LaunchRequest& request);
  // The same after a clean stop of the core that we started: two would share the machine. A core that takes
  // longer than stop_limit gives Failed; the request stays, for start() and for the end of that core.
  void move_to(const LaunchRequest& request);
  void open_remote(const QString& control_file);
  void close();  // detaches; the core keeps running

  void start();  // now: from Stopped, Failed or Waiting
  // Ours: a clean stop, then a start; "Restart normally" is restart(false). As with move_to(), the wish
  // outlives stop_limit.
  void restart(bool safe);
  // A clean stop of the core that we started; any other core is only detached. Then stopped(), within
  // stop_limit.
  void quit();
  void dismiss_crashes();  // until the next one
  // Stops waiting for a core that ends.
  void give_up();

  void tick();  // a few times a second

  const CoreStatus& status() const { return status_; }
  // The text on the command line of the core that answers; empty: none, or this start of the app did not
  // launch it.
  QString launched_text() const;

 Q_SIGNALS:
  void status_changed();
  void attached(std::shared_ptr<neuroshard::node::Node> node);         // null: no core answers
  void started(const neuroshard::platform::ProcessIdentity& process);  // one of ours answers
  void stopped(bool clean);  // after quit(); clean = its end was seen (or it is not ours)

 private:
  void on_present(const CorePresence& core);
  void on_absent(const CoreAbsence& why);
  void on_ended(const CoreExit& exit);
  void went(bool crashed, const QString& said, int code);
  void launch(bool safe);
  void launch_now(bool safe);
  void crashed(const QString& said);
  void finish_stop(bool clean);
  void set_phase(CorePhase phase);
  void detach();
  bool is_ours(const platform::ProcessIdentity& process) const;
  void forget_old_crashes();

  CoreLink& link_;
  CoreLauncher& launcher_;
  const Clock& clock_;
  const SupervisorLimits limits_;

  Gate gate_;
  quint64 gate_question_ = 0;  // an answer to an older one is ignored
  LaunchRequest request_;
  QString launched_text_;  // of the last launch
  CoreStatus status_;
  std::shared_ptr<node::Node> node_;
  platform::ProcessIdentity started_;
  std::vector<MonotonicTime> crashes_;
  Duration next_wait_;
  MonotonicTime next_start_{}, give_up_{}, running_since_{}, launched_{};
  bool lost_ = false;  // looking for the core that answered until now
  bool quitting_ = false;
  std::optional<LaunchRequest> next_;            // opened after a stop; while Stopping, or Failed since
  bool restart_ = false, restart_safe_ = false;  // what follows a stop
};

}  // namespace neuroshard::gui
