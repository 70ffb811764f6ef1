// Whether the desktop shows tray icons now, over which protocol, and when that changes. To be asked before an
// icon is made: Qt looks for a StatusNotifier host once in a process, when the first icon is made or the
// first question about trays is asked, and never again; an icon that is made before the host is there would
// never be seen.
#pragma once

#include <QObject>

namespace neuroshard::ui {

enum class TrayProtocol {
  None,
  Notifier,  // StatusNotifierItem, over the session's bus
  Embed,     // XEmbed: the System Tray Protocol of freedesktop.org
  Native,    // Windows, macOS
};

// Threads: ui.
class TrayHost : public QObject {
  Q_OBJECT
 public:
  using QObject::QObject;

  // Whether the first answer is there.
  virtual bool known() const = 0;
  // Whether the desktop shows icons over it.
  virtual bool speaks(TrayProtocol protocol) const = 0;
  // The protocol that Qt chooses for an icon made now.
  TrayProtocol protocol() const {
    for (const auto one : {TrayProtocol::Native, TrayProtocol::Notifier, TrayProtocol::Embed})
      if (speaks(one)) return one;
    return TrayProtocol::None;
  }

 Q_SIGNALS:
  void changed();  // and once, when it becomes known
};

}  // namespace neuroshard::ui
