#include "app/gui/core_supervisor.h"

#include <QPointer>
#include <algorithm>

namespace neuroshard::gui {
namespace {

using Kind = CoreAbsence::Kind;

// Of the table in `neuroshardd --help`: something else holds the data directory, which may pass.
constexpr int exit_busy = 75;

Duration to_seconds_up(Duration wait) {
  return std::chrono::ceil<std::chrono::seconds>(wait);
}

}  // namespace

CoreSupervisor::CoreSupervisor(CoreLink& link, CoreLauncher& launcher, const Clock& clock,
                               SupervisorLimits limits, QObject* parent)
    : QObject(parent),
      link_(link),
      launcher_(launcher),
      clock_(clock),
      limits_(limits),
      next_wait_(limits.first_wait) {
  connect(&link_, &CoreLink::present, this, &CoreSupervisor::on_present);
  connect(&link_, &CoreLink::absent, this, &CoreSupervisor::on_absent);
  connect(&launcher_, &CoreLauncher::ended, this, &CoreSupervisor::on_ended);
}

void CoreSupervisor::set_phase(CorePhase phase) {
  status_.phase = phase;
  Q_EMIT status_changed();
}

void CoreSupervisor::detach() {
  if (!node_) return;
  node_.reset();
  Q_EMIT attached(nullptr);
}

void CoreSupervisor::open(const LaunchRequest& request) {
  close();
  request_ = request;
  next_wait_ = limits_.first_wait;
  set_phase(CorePhase::Looking);
  link_.open(request.data_directory);
}

void CoreSupervisor::move_to(const LaunchRequest& request) {
  const bool runs = status_.phase == CorePhase::Running || status_.phase == CorePhase::WrongVersion;
  const bool ours = status_.ours && status_.process.pid != 0 && (runs || next_);
  if (quitting_) return;
  if (!ours && !launcher_.pid() && status_.phase != CorePhase::Stopping) return open(request);
  next_ = request;
  restart_ = false;
  ++gate_question_;
  if (status_.phase == CorePhase::Stopping) return;
  give_up_ = clock_.monotonic_now() + limits_.stop_limit;
  const bool told = ours && node_ && node_->request_shutdown().ok();
  set_phase(CorePhase::Stopping);
  if (told) return;
  if (launcher_.pid()) return launcher_.terminate();
  link_.ask_to_end(status_.process);
}

void CoreSupervisor::open_remote(const QString& control_file) {
  close();
  status_.remote = true;
  set_phase(CorePhase::Looking);
  link_.open_file(control_file);
}

void CoreSupervisor::close() {
  ++gate_question_;
  detach();
  link_.close();
  status_ = {};
  crashes_.clear();
  restart_ = false;
  next_.reset();
  lost_ = false;
  set_phase(CorePhase::Closed);
}

bool CoreSupervisor::is_ours(const platform::ProcessIdentity& process) const {
  if (status_.remote || process.pid == 0) return false;
  return launcher_.pid() == process.pid || process == started_;
}

QString CoreSupervisor::launched_text() const {
  const bool launched = status_.process.pid != 0 && launcher_.pid() == status_.process.pid;
  return launched ? launched_text_ : QString();
}

void CoreSupervisor::on_present(const CorePresence& core) {
  if (status_.phase == CorePhase::Closed) return;
  status_.process = core.process;
  status_.ours = is_ours(core.process);
  if (status_.phase == CorePhase::Stopping || next_) {
    // The core answers for the first time after the request to end it.
    if (status_.ours) static_cast<void>(core.node->request_shutdown().ok());
    return;
  }
  node_ = core.node;
  status_.may_steer = core.may_steer;
  lost_ = false;
  running_since_ = clock_.monotonic_now();
  status_.crashed = false;
  status_.error = {};
  status_.said.clear();
  if (status_.ours) {
    started_ = core.process;
    Q_EMIT started(core.process);
  } else {
    status_.safe_mode = false;  // the snapshot knows
  }
  if (!status_.safe_mode) forget_old_crashes();
  status_.phase = CorePhase::Running;
  Q_EMIT attached(node_);
  Q_EMIT status_changed();
}

void CoreSupervisor::on_absent(const CoreAbsence& why) {
  if (status_.phase == CorePhase::Closed) return;
  const bool was_running = status_.phase == CorePhase::Running;
  if (why.kind == Kind::Refused && status_.phase != CorePhase::Stopping && !next_) {
    detach();
    status_.error = why.error;
    if (why.process.pid != 0) status_.process = why.process;
    status_.ours = is_ours(status_.process);
    return set_phase(why.error.code == ErrorCode::Unsupported ? CorePhase::WrongVersion : CorePhase::Failed);
  }
  switch (status_.phase) {
    case CorePhase::Looking:
    case CorePhase::Running:
      detach();
      if (status_.remote) {
        status_.error = why.error;
        return set_phase(CorePhase::Looking);
      }
      // A process of ours that still runs, or one that does not answer just now: the link tries again. One
      // that is killed lets go of its connections before it has ended.
      if (launcher_.pid() || why.kind == Kind::Silent) {
        lost_ = lost_ || was_running;
        if (was_running) set_phase(CorePhase::Looking);
        return;
      }
      if (!was_running && !lost_) return launch(request_.safe);
      return went(why.kind == Kind::Killed, {}, 0);
    case CorePhase::WrongVersion:
      if (!launcher_.pid() && why.kind != Kind::Silent) launch(false);
      return;
    case CorePhase::Failed:
      if (!next_) return;
      [[fallthrough]];  // it has taken longer to end
    case CorePhase::Stopping:
      detach();
      if (!launcher_.pid() && (why.kind == Kind::None || why.kind == Kind::Killed)) finish_stop(true);
      return;
    case CorePhase::Closed:
    case CorePhase::Starting:
    case CorePhase::Waiting:
    case CorePhase::Stopped: return;
  }
}

void CoreSupervisor::on_ended(const CoreExit& exit) {
  // Ours gave way to another core, which came first and is the one that we talk to.
  if (status_.phase == CorePhase::Running && exit.pid != status_.process.pid) return;
  switch (status_.phase) {
    case CorePhase::Stopping: detach(); return finish_stop(true);
    case CorePhase::Starting:
      if (exit.crashed || exit.code == 0) return went(exit.crashed, exit.said, exit.code);
      status_.said = exit.said;
      status_.error = make_error(ErrorCode::Unavailable, exit.said.toStdString());
      if (exit.code != exit_busy) return set_phase(CorePhase::Failed);
      next_start_ = clock_.monotonic_now() + next_wait_;
      status_.wait = to_seconds_up(next_wait_);
      next_wait_ = std::min(next_wait_ * 2, limits_.last_wait);
      return set_phase(CorePhase::Waiting);
    case CorePhase::Running:
    case CorePhase::Looking:
      if (status_.remote) return;  // the window shows another computer's core
      detach();
      return went(exit.crashed || exit.code != 0, exit.said, exit.code);
    case CorePhase::Failed:
      if (next_) return open(LaunchRequest(*next_));
      return;
    case CorePhase::Closed:
    case CorePhase::Waiting:
    case CorePhase::Stopped:
    case CorePhase::WrongVersion: return;
  }
}

void CoreSupervisor::went(bool was_crash, const QString& said, int code) {
  lost_ = false;
  status_.said = said;
  status_.crashed = was_crash;
  if (!was_crash) return set_phase(CorePhase::Stopped);
  status_.error = make_error(ErrorCode::Unavailable,
                             code == 0 ? "the core crashed or was killed" : "the core ended with an error");
  // Another program started that core and looks after it.
  if (!status_.ours && status_.process.pid != 0) return set_phase(CorePhase::Stopped);
  crashed(said);
}

void CoreSupervisor::crashed(const QString& said) {
  const MonotonicTime now = clock_.monotonic_now();
  if (node_ == nullptr && now - running_since_ > limits_.crash_window) next_wait_ = limits_.first_wait;
  crashes_.push_back(now);
  status_.dismissed = false;
  forget_old_crashes();
  status_.said = said;
  if (status_.safe_mode) {
    status_.error =
        make_error(ErrorCode::Unavailable, "the core crashed in safe mode too; the diagnostics say more");
    return set_phase(CorePhase::Failed);
  }
  next_start_ = now + next_wait_;
  status_.wait = to_seconds_up(next_wait_);
  next_wait_ = std::min(next_wait_ * 2, limits_.last_wait);
  set_phase(CorePhase::Waiting);
}

void CoreSupervisor::forget_old_crashes() {
  const MonotonicTime oldest = clock_.monotonic_now() - limits_.crash_window;
  crashes_.erase(std::remove_if(crashes_.begin(), crashes_.end(),
                                [oldest](MonotonicTime time) { return time < oldest; }),
                 crashes_.end());
  status_.crashes = crashes_.size();
}

void CoreSupervisor::dismiss_crashes() {
  status_.dismissed = true;
  Q_EMIT status_changed();
}

void CoreSupervisor::launch(bool safe) {
  status_.safe_mode = safe;
  status_.wait = Duration{0};
  status_.process = {};
  status_.ours = true;
  set_phase(CorePhase::Starting);
  if (!gate_) return launch_now(safe);
  const quint64 question = ++gate_question_;
  gate_([guard = QPointer(this), this, question, safe](bool allowed) {
    if (!guard || question != gate_question_ || status_.phase != CorePhase::Starting) return;
    if (allowed) return launch_now(safe);
    close();
  });
}

void CoreSupervisor::launch_now(bool safe) {
  LaunchRequest request = request_;
  request.safe = safe;
  launched_ = clock_.monotonic_now();
  launched_text_ = safe ? QString() : request.text_folder;
  const auto launched = launcher_.launch(request);
  if (launched.ok()) return;
  status_.error = launched.error();
  set_phase(CorePhase::Failed);
}

void CoreSupervisor::start() {
  if (status_.phase != CorePhase::Stopped && status_.phase != CorePhase::Failed &&
      status_.phase != CorePhase::Waiting)
    return;
  if (next_) return move_to(LaunchRequest(*next_));
  crashes_.clear();
  status_.crashes = 0;
  status_.error = {};
  next_wait_ = limits_.first_wait;
  status_.phase = CorePhase::Looking;
  if (launcher_.pid()) return Q_EMIT status_changed();
  launch(false);
}

void CoreSupervisor::restart(bool safe) {
  crashes_.clear();
  status_.crashes = 0;
  next_wait_ = limits_.first_wait;
  if (!status_.ours) return;
  if (status_.phase != CorePhase::Running && status_.phase != CorePhase::WrongVersion) return start();
  restart_ = true;
  restart_safe_ = safe;
  give_up_ = clock_.monotonic_now() + limits_.stop_limit;
  const bool told = node_ && node_->request_shutdown().ok();
  set_phase(CorePhase::Stopping);
  if (!told) link_.ask_to_end(status_.process);
}

void CoreSupervisor::quit() {
  if (quitting_) return;
  quitting_ = true;
  restart_ = false;
  give_up_ = clock_.monotonic_now() + limits_.stop_limit;
  if (status_.phase == CorePhase::Stopping) return;
  if (status_.phase == CorePhase::Running && status_.ours) {
    const bool told = node_->request_shutdown().ok();
    set_phase(CorePhase::Stopping);
    if (!told) link_.ask_to_end(status_.process);
    return;
  }
  ++gate_question_;
  if (launcher_.pid()) {
    set_phase(CorePhase::Stopping);
    return launcher_.terminate();
  }
  finish_stop(true);
}

void CoreSupervisor::give_up() {
  if (status_.phase == CorePhase::Stopping) finish_stop(false);
}

void CoreSupervisor::finish_stop(bool clean) {
  // One that stands still may never have read the request, and the connection ends now: a signal waits for
  // it.
  if (!clean && status_.ours && status_.process.pid != 0) link_.ask_to_end(status_.process);
  if (quitting_) {
    close();
    return Q_EMIT stopped(clean);
  }
  if (clean && next_) return open(LaunchRequest(*next_));
  if (!restart_ && !next_) return set_phase(CorePhase::Stopped);
  restart_ = false;
  if (clean) return launch(restart_safe_);
  if (!next_) {  // a restart: the late end of this core leads to it
    next_ = request_;
    next_->safe = restart_safe_;
  }
  status_.error = make_error(ErrorCode::Timeout, "the core does not stop; it is still writing, or it hangs");
  set_phase(CorePhase::Failed);
}

void CoreSupervisor::tick() {
  const MonotonicTime now = clock_.monotonic_now();
  if (status_.phase == CorePhase::Stopping && now >= give_up_) return finish_stop(false);
  if (status_.phase == CorePhase::Starting && launcher_.pid() && now - launched_ >= limits_.start_limit) {
    // It may still come: then it is used.
    status_.error =
        make_error(ErrorCode::Timeout, "the core was started and does not answer; its log says more");
    return set_phase(CorePhase::Failed);
  }
  if (status_.phase == CorePhase::Running && !status_.safe_mode) {
    const std::size_t before = status_.crashes;
    forget_old_crashes();
    if (status_.crashes != before) Q_EMIT status_changed();
  }
  if (status_.phase != CorePhase::Waiting) return;
  if (now >= next_start_) {
    forget_old_crashes();
    return launch(status_.crashes >= limits_.crashes_to_safe_mode);
  }
  const Duration wait = to_seconds_up(next_start_ - now);
  if (wait == status_.wait) return;
  status_.wait = wait;
  Q_EMIT status_changed();
}

}  // namespace neuroshard::gui
