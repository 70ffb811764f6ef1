// The pauses that end by themselves, as the window and the tray offer them.
#pragma once

#include <QCoreApplication>
#include <QString>
#include <chrono>
#include <functional>
#include <vector>

#include "core/base/clock.h"

namespace neuroshard::ui {

class Snooze {
  Q_DECLARE_TR_FUNCTIONS(neuroshard::ui::Snooze)
 public:
  struct Choice {
    QString text;
    std::function<std::chrono::seconds(WallTime now)> duration;  // from the moment of the click
  };
  static std::vector<Choice> choices();
  // To 6:00 of the next day in the time zone of this session, as "neuroshardd snooze tomorrow" has it.
  static std::chrono::seconds until_tomorrow(WallTime now);
};

}  // namespace neuroshard::ui
