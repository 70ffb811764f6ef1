// The place at which an alert can be dealt with.
#pragma once

#include <QString>

namespace neuroshard::ui {

struct AlertAction {
  QString text;    // of the button: "Open storage settings"; empty = nothing to click
  QString page;    // key
  QString detail;  // for Page::open_detail
};

AlertAction alert_action(const QString& alert_key);

}  // namespace neuroshard::ui
