// State and tooltip of the tray icon.
#pragma once

#include <QCoreApplication>
#include <QString>
#include <optional>

#include "ui/text/state_text.h"

namespace neuroshard::ui {

struct TrayView {
  DisplayState display = DisplayState::Idle;
  QString status;   // one line: the state and why, for the menu
  QString tooltip;  // that, the loss and what was earned today
};

class TrayWords {
  Q_DECLARE_TR_FUNCTIONS(neuroshard::ui::TrayWords)
 public:
  // As StateWords::describe().
  static TrayView describe(const node::Snapshot* snapshot, bool attached, const std::optional<CoreLife>& life,
                           WallTime now);
};

}  // namespace neuroshard::ui
