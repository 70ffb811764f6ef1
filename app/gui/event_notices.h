// The events of the core that the user is notified of, and the words for them.
//
// Threads: ui.
#pragma once

#include <QCoreApplication>
#include <QString>
#include <optional>

#include "app/gui/notifier.h"
#include "core/node/events.h"
#include "core/node/snapshot.h"

namespace neuroshard::gui {

class EventNotices {
  Q_DECLARE_TR_FUNCTIONS(neuroshard::gui::EventNotices)
 public:
  // Nothing: no notification. snapshot: the newest one; null = none has come. status: the state in words.
  std::optional<Notification> of(const node::Event& event, const node::Snapshot* snapshot,
                                 const QString& status);

 private:
  std::optional<Notification> of_state(node::RunState state, const node::Snapshot* snapshot,
                                       const QString& status);

  bool told_of_pause_ = false;  // of the pause that lasts
};

}  // namespace neuroshard::gui
