#include "ui/text/state_text.h"

#include <algorithm>

#include "ui/text/format.h"

namespace neuroshard::ui {
namespace {

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

QString StateWords::finish_action(const node::Snapshot* snapshot) {
  return snapshot != nullptr && shares_rounds(*snapshot) ? tr("Finish this round, then stop")
                                                         : tr("Finish this step, then stop");
}

QString StateWords::severity(node::Severity severity) {
  switch (severity) {
    case node::Severity::Notice: return tr("Notice");
    case node::Severity::Warning: return tr("Warning");
    case node::Severity::Critical: break;
  }
  return tr("Needs you");
}

Tone StateWords::tone(node::Severity severity) {
  switch (severity) {
    case node::Severity::Notice: return Tone::Info;
    case node::Severity::Warning: return Tone::Warning;
    case node::Severity::Critical: break;
  }
  return Tone::Danger;
}

StateText StateWords::describe(const node::Snapshot* snapshot, bool attached,
                               const std::optional<CoreLife>& life, WallTime now) {
  const auto state = [](DisplayState display, Tone tone, const char* icon, const QString& word) {
    StateText text;
    text.display = display;
    text.tone = tone;
    text.icon = QString::fromLatin1(icon);
    text.word = word;
    return text;
  };
  if (!attached || snapshot == nullptr) {
    if (snapshot == nullptr && attached)
      return state(DisplayState::Syncing, Tone::Info, "state-syncing", tr("Connecting"));
    if (life) {
      const char* icon = life->display == DisplayState::Syncing ? "state-syncing"
                         : life->display == DisplayState::Idle  ? "state-idle"
                                                                : "state-danger";
      const Tone tone = life->display == DisplayState::Error ? Tone::Danger : Tone::Info;
      StateText text = state(life->display, tone, icon, life->word);
      text.reason = life->reason;
      return text;
    }
    StateText gone = state(DisplayState::Error, Tone::Danger, "state-danger", tr("Core not running"));
    gone.reason = tr("nothing is trained until it runs again");
    return gone;
  }
  StateText text;
  switch (snapshot->state) {
    case node::RunState::Starting:
      text = state(DisplayState::Syncing, Tone::Info, "state-syncing", tr("Starting"));
      text.reason = text_of(snapshot->training.activity);
      break;
    case node::RunState::Idle:
      text = state(DisplayState::Idle, Tone::Info, "state-idle", tr("Idle"));
      text.reason =
          snapshot->training.target_step != 0 && snapshot->training.step >= snapshot->training.target_step
              ? tr("the goal of %1 steps is reached").arg(Format::integer(snapshot->training.target_step))
              : tr("nothing to train on yet");
      break;
    case node::RunState::Training:
      text = state(DisplayState::Training, Tone::Working, "state-working", tr("Training"));
      if (snapshot->finishing)
        text.reason = shares_rounds(*snapshot) ? tr("finishing this round, then it stops")
                                               : tr("finishing this step, then it stops");
      else if (snapshot->overridden_until)
        text.reason = tr("rules are ignored until %1").arg(Format::until(*snapshot->overridden_until, now));
      break;
    case node::RunState::Paused: {
      const bool by_user = has_reason(*snapshot, "user") || has_reason(*snapshot, "snooze");
      text =
          state(DisplayState::Paused, by_user ? Tone::Paused : Tone::Warning, "state-paused", tr("Paused"));
      if (snapshot->snoozed_until) {
        text.word = tr("Snoozed");
        text.reason = tr("until %1").arg(Format::until(*snapshot->snoozed_until, now));
      } else if (!snapshot->pause_reasons.empty()) {
        text.reason = text_of(snapshot->pause_reasons.front().text);
        const auto more = static_cast<int>(snapshot->pause_reasons.size()) - 1;
        if (more > 0) text.reason += tr(" (and %n more)", nullptr, more);
      }
      break;
    }
    case node::RunState::Stopping:
      text = state(DisplayState::Syncing, Tone::Info, "state-syncing", tr("Stopping"));
      text.reason = tr("writing the last checkpoint");
      break;
    case node::RunState::Failed:
      text = state(DisplayState::Error, Tone::Danger, "state-danger", tr("Needs you"));
      if (!snapshot->alerts.empty()) text.reason = text_of(snapshot->alerts.front().message);
      break;
  }
  for (const node::PauseReason& reason : snapshot->pause_reasons) {
    QString line = text_of(reason.text);
    if (reason.until) line = tr("%1 (until %2)").arg(line, Format::until(*reason.until, now));
    text.reasons << line;
    text.can_override = text.can_override || reason.can_override;
  }
  // One reason that cannot be overridden keeps the pause.
  if (std::any_of(snapshot->pause_reasons.begin(), snapshot->pause_reasons.end(),
                  [](const node::PauseReason& reason) { return !reason.can_override; }))
    text.can_override = false;
  if (snapshot->safe_mode && text.tone != Tone::Danger) {
    text.display = DisplayState::Warning;
    text.tone = Tone::Warning;
    text.icon = QStringLiteral("state-warning");
    text.word = tr("Safe mode");
    text.reason = tr("no training until it is left");
  }
  const bool urgent =
      std::any_of(snapshot->alerts.begin(), snapshot->alerts.end(),
                  [](const node::Alert& alert) { return alert.severity == node::Severity::Critical; });
  const bool warned =
      std::any_of(snapshot->alerts.begin(), snapshot->alerts.end(),
                  [](const node::Alert& alert) { return alert.severity == node::Severity::Warning; });
  if (urgent)
    text.display = DisplayState::Error;
  else if (warned && text.display == DisplayState::Training)
    text.display = DisplayState::Warning;
  return text;
}

}  // namespace neuroshard::ui
