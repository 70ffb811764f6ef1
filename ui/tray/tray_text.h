// What the tray icon says: its state and its tooltip.
#pragma once

#include <QCoreApplication>
#include <QString>
#include <optional>

#include "core/node/snapshot.h"
#include "ui/text/state_text.h"

namespace neuroshard::ui {

// What the app knows of the core's life while no core answers: "Starting", with the reason.
struct CoreTrouble {
  DisplayState display = DisplayState::Error;
  QString word;
  QString reason;
};

struct TrayView {
  DisplayState display = DisplayState::Idle;
  QString status;   // one line: the state and why, for the menu
  QString tooltip;  // that, the loss and what was earned today
};

class TrayWords {
  Q_DECLARE_TR_FUNCTIONS(neuroshard::ui::TrayWords)
 public:
  // snapshot may be null. `trouble` replaces what StateWords says of a core that does not answer.
  static TrayView describe(const node::Snapshot* snapshot, bool attached,
                           const std::optional<CoreTrouble>& trouble, WallTime now);
};

}  // namespace neuroshard::ui
