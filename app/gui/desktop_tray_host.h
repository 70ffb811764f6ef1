// The trays of this desktop: a StatusNotifier host on the session's bus, the owner of XEmbed's selection, or
// the system's own where there is only one. Nothing waits for an answer.
#pragma once

#include <QTimer>

#include "ui/tray/tray_host.h"

class QDBusPendingCallWatcher;

namespace neuroshard::gui {

// Threads: ui. The first answer comes some milliseconds after construction, or after 5 s if the bus is
// silent.
class DesktopTrayHost final : public ui::TrayHost {
  Q_OBJECT
 public:
  explicit DesktopTrayHost(QObject* parent = nullptr);
  ~DesktopTrayHost() override;

  bool known() const override { return known_; }
  bool speaks(ui::TrayProtocol protocol) const override;

 private Q_SLOTS:
  void ask_bus();

 private:
  void watch_bus();
  void look();  // reads the state of trays that send no signal
  void take(bool* what, bool now);

  QTimer timer_;
  QDBusPendingCallWatcher* asked_ = nullptr;  // the latest question
  bool known_ = false;
  bool notifier_ = false, embed_ = false, native_ = false;
};

}  // namespace neuroshard::gui
