#include "app/gui/event_notices.h"

#include <algorithm>
#include <utility>

namespace neuroshard::gui {
namespace {

// The user knows of a pause of their own.
bool user_paused(const node::Snapshot* snapshot) {
  return snapshot != nullptr && std::any_of(snapshot->pause_reasons.begin(), snapshot->pause_reasons.end(),
                                            [](const node::PauseReason& reason) {
                                              return reason.key == "user" || reason.key == "snooze";
                                            });
}

}  // namespace

std::optional<Notification> EventNotices::of(const node::Event& event, const node::Snapshot* snapshot,
                                             const QString& status) {
  if (const auto* changed = std::get_if<node::StateChanged>(&event))
    return of_state(changed->state, snapshot, status);
  const auto* raised = std::get_if<node::AlertRaised>(&event);
  if (raised == nullptr || raised->alert.severity == node::Severity::Notice) return std::nullopt;
  return Notification{ui::NotificationClass::Problem, tr("NeuroShard needs attention"),
                      QString::fromStdString(raised->alert.message)};
}

std::optional<Notification> EventNotices::of_state(node::RunState state, const node::Snapshot* snapshot,
                                                   const QString& status) {
  switch (state) {
    case node::RunState::Paused:
      told_of_pause_ = !user_paused(snapshot);
      if (!told_of_pause_) return std::nullopt;
      return Notification{ui::NotificationClass::Pause, tr("Paused"), status};
    case node::RunState::Training:
      if (!std::exchange(told_of_pause_, false)) return std::nullopt;
      return Notification{ui::NotificationClass::Pause, tr("Training resumed"), status};
    case node::RunState::Starting: return std::nullopt;  // the training prepares again after the pause
    case node::RunState::Idle:
    case node::RunState::Stopping:
    case node::RunState::Failed: break;
  }
  told_of_pause_ = false;
  return std::nullopt;
}

}  // namespace neuroshard::gui
