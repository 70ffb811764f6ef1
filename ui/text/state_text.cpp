#include "ui/text/state_text.h"

#include <algorithm>

#include "ui/text/format.h"

namespace neuroshard::ui {
namespace {

constexpr const char* no_network = "solo";  // the profile of a node that trains alone

QString text_of(const std::string& text) {
  return QString::fromStdString(text);
}

bool shares_rounds(const node::Snapshot& snapshot) {
  return snapshot.rounds.taking_part && snapshot.rounds.member && snapshot.rounds.members > 1;
}

bool has_reason(const node::Snapshot& snapshot, std::string_view key) {
  return std::any_of(snapshot.pause_reasons.begin(), snapshot.pause_reasons.end(),
                     [key](const node::PauseReason& reason) { return reason.key == key; });
}

StateText make_state(DisplayState display, Tone tone, const char* icon, const QString& word) {
  StateText text;
  text.display = display;
  text.tone = tone;
  text.icon = QString::fromLatin1(icon);
  text.word = word;
  return text;
}

bool has_alert(const node::Snapshot& snapshot, node::Severity severity) {
  return std::any_of(snapshot.alerts.begin(), snapshot.alerts.end(),
                     [severity](const node::Alert& alert) { return alert.severity == severity; });
}

// All reasons of a pause, in full. One reason that cannot be overridden keeps the pause.
void add_reasons(const node::Snapshot& snapshot, WallTime now, StateText& text) {
  bool all = !snapshot.pause_reasons.empty();
  for (const node::PauseReason& reason : snapshot.pause_reasons) {
    QString line = text_of(reason.text);
    if (reason.until) line = StateWords::tr("%1 (until %2)").arg(line, Format::until(*reason.until, now));
    text.reasons << line;
    all = all && reason.can_override;
  }
  text.can_override = all;
}

}  // namespace

QString tone_name(Tone tone) {
  switch (tone) {
    case Tone::Working: return QStringLiteral("working");
    case Tone::Info: return QStringLiteral("info");
    case Tone::Paused: return QStringLiteral("paused");
    case Tone::Warning: return QStringLiteral("warning");
    case Tone::Danger: break;
  }
  return QStringLiteral("danger");
}

QString tray_icon_name(DisplayState state) {
  switch (state) {
    case DisplayState::Training: return QStringLiteral("tray-training");
    case DisplayState::Idle: return QStringLiteral("tray-idle");
    case DisplayState::Paused: return QStringLiteral("tray-paused");
    case DisplayState::Syncing: return QStringLiteral("tray-syncing");
    case DisplayState::Warning: return QStringLiteral("tray-warning");
    case DisplayState::Error: break;
  }
  return QStringLiteral("tray-error");
}

bool can_start_training(const node::Snapshot& snapshot) {
  const bool none_runs = snapshot.state == node::RunState::Idle || snapshot.state == node::RunState::Failed;
  return none_runs && !snapshot.safe_mode;
}

QString StateWords::finish_action(const node::Snapshot* snapshot) {
  return snapshot != nullptr && shares_rounds(*snapshot) ? tr("Finish this round, then stop")
                                                         : tr("Finish this step, then stop");
}

QString StateWords::without_network(const node::Snapshot& snapshot) {
  const std::string& network = snapshot.program.network;
  if (!snapshot.safe_mode || network.empty() || network == no_network) return {};
  return tr("Safe mode: this node is not connected to its network %1. It connects when the core starts "
            "normally.")
      .arg(text_of(network));
}

QString StateWords::severity(node::Severity severity) {
  switch (severity) {
    case node::Severity::Notice: return tr("Notice");
    case node::Severity::Warning: return tr("Warning");
    case node::Severity::Critical: break;
  }
  return tr("Needs attention");
}

Tone StateWords::tone(node::Severity severity) {
  switch (severity) {
    case node::Severity::Notice: return Tone::Info;
    case node::Severity::Warning: return Tone::Warning;
    case node::Severity::Critical: break;
  }
  return Tone::Danger;
}

StateText StateWords::without_core(const std::optional<CoreLife>& life) {
  if (!life) {
    StateText gone = make_state(DisplayState::Error, Tone::Danger, "state-danger", tr("Core not running"));
    gone.reason = tr("training continues when it runs again");
    return gone;
  }
  const char* icon = life->display == DisplayState::Syncing ? "state-syncing"
                     : life->display == DisplayState::Idle  ? "state-idle"
                                                            : "state-danger";
  const Tone tone = life->display == DisplayState::Error ? Tone::Danger : Tone::Info;
  StateText text = make_state(life->display, tone, icon, life->word);
  text.reason = life->reason;
  return text;
}

QString StateWords::idle_reason(const node::TrainingView& training) {
  if (training.target_step > 0 && training.step >= training.target_step)
    return tr("the goal of %1 steps is reached").arg(Format::integer(training.target_step));
  if (training.step > 0) return tr("stopped after step %1").arg(Format::integer(training.step));
  return tr("nothing to train on yet");
}

QString StateWords::training_reason(const node::Snapshot& snapshot, WallTime now) {
  if (snapshot.finishing)
    return shares_rounds(snapshot) ? tr("stops after this round") : tr("stops after this step");
  if (snapshot.overridden_until)
    return tr("rules are ignored until %1").arg(Format::until(*snapshot.overridden_until, now));
  return {};
}

StateText StateWords::paused(const node::Snapshot& snapshot, WallTime now) {
  const bool by_user = has_reason(snapshot, "user") || has_reason(snapshot, "snooze");
  StateText text =
      make_state(DisplayState::Paused, by_user ? Tone::Paused : Tone::Warning, "state-paused", tr("Paused"));
  // The end of a snooze resumes nothing while contributing is off.
  if (snapshot.snoozed_until && !has_reason(snapshot, "user")) {
    text.word = tr("Snoozed");
    text.reason = tr("until %1").arg(Format::until(*snapshot.snoozed_until, now));
  } else if (!snapshot.pause_reasons.empty()) {
    text.reason = text_of(snapshot.pause_reasons.front().text);
    const auto more = static_cast<int>(snapshot.pause_reasons.size()) - 1;
    if (more > 0) text.reason += tr(" (and %n more)", nullptr, more);
  }
  return text;
}

StateText StateWords::of_state(const node::Snapshot& snapshot, WallTime now) {
  const auto with_reason = [](StateText text, const QString& reason) {
    text.reason = reason;
    return text;
  };
  switch (snapshot.state) {
    case node::RunState::Starting:
      return with_reason(make_state(DisplayState::Syncing, Tone::Info, "state-syncing", tr("Starting")),
                         text_of(snapshot.training.activity));
    case node::RunState::Idle:
      return with_reason(make_state(DisplayState::Idle, Tone::Info, "state-idle", tr("Idle")),
                         idle_reason(snapshot.training));
    case node::RunState::Training:
      return with_reason(make_state(DisplayState::Training, Tone::Working, "state-working", tr("Training")),
                         training_reason(snapshot, now));
    case node::RunState::Paused: return paused(snapshot, now);
    case node::RunState::Stopping:
      return with_reason(make_state(DisplayState::Syncing, Tone::Info, "state-syncing", tr("Stopping")),
                         tr("writing the last checkpoint"));
    case node::RunState::Failed: break;
  }
  return with_reason(make_state(DisplayState::Error, Tone::Danger, "state-danger", tr("Needs attention")),
                     snapshot.alerts.empty() ? QString() : text_of(snapshot.alerts.front().message));
}

StateText StateWords::describe(const node::Snapshot* snapshot, bool attached,
                               const std::optional<CoreLife>& life, WallTime now) {
  if (!attached) return without_core(life);
  if (snapshot == nullptr)
    return make_state(DisplayState::Syncing, Tone::Info, "state-syncing", tr("Connecting"));
  StateText text = of_state(*snapshot, now);
  add_reasons(*snapshot, now, text);
  if (snapshot->safe_mode && text.tone != Tone::Danger) {
    text.display = DisplayState::Warning;
    text.tone = Tone::Warning;
    text.icon = QStringLiteral("state-warning");
    text.word = tr("Safe mode");
    text.reason = tr("no training in safe mode");
  }
  if (has_alert(*snapshot, node::Severity::Critical))
    text.display = DisplayState::Error;
  else if (has_alert(*snapshot, node::Severity::Warning) && text.display == DisplayState::Training)
    text.display = DisplayState::Warning;
  return text;
}

}  // namespace neuroshard::ui
