// Starting with the desktop session: an entry of the XDG autostart folder.
#pragma once

#include <QByteArray>
#include <QString>

#include "core/base/expected.h"

namespace neuroshard::gui {

class Autostart {
 public:
  // `folder` is $XDG_CONFIG_HOME/autostart; `program` the app's absolute path.
  Autostart(QString folder, QString program);
  static QString default_folder();

  bool enabled() const;
  Expected<void> set(bool on) const;
  // An upgrade may have deleted the program that the entry starts: then the entry gets this one.
  Expected<void> repair() const;
  // The content of the entry.
  QString entry() const;

 private:
  QString path() const { return folder_ + "/neuroshard.desktop"; }
  QByteArray read() const;  // empty: there is none
  QString folder_, program_;
};

}  // namespace neuroshard::gui
