// Turns events into notifications of the desktop: the classes that the user chose, and at most one
// notification every thirty seconds. Events in between come together in the next one.
//
// Threads: ui.
#pragma once

#include <QObject>
#include <QString>
#include <functional>
#include <optional>
#include <vector>

#include "core/base/clock.h"
#include "ui/models/preferences.h"

namespace neuroshard::gui {

struct Notification {
  ui::NotificationClass about = ui::NotificationClass::Problem;
  QString title, text;
};

class Notifier {
 public:
  static constexpr std::chrono::seconds rate{30};
  static constexpr std::size_t max_waiting = 16;  // beyond it only the count is kept

  using Wanted = std::function<bool(ui::NotificationClass)>;
  using Show = std::function<void(const Notification&)>;
  // `wanted` is asked for each; `show` hands it to the desktop.
  Notifier(const Clock& clock, Wanted wanted, Show show);

  void add(Notification notification);
  void tick();  // now and then: shows waiting notifications

 private:
  void show_waiting();

  const Clock& clock_;
  Wanted wanted_;
  Show show_;
  std::optional<MonotonicTime> last_;
  std::vector<Notification> waiting_;
  std::size_t waiting_count_ = 0;
};

}  // namespace neuroshard::gui
