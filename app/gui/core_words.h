// Texts of the window and the tray about the life of the core, as the supervisor sees it.
#pragma once

#include <QCoreApplication>
#include <functional>
#include <optional>

#include "app/gui/core_supervisor.h"
#include "ui/text/state_text.h"
#include "ui/widgets/banner.h"

namespace neuroshard::gui {

struct CoreActions {
  std::function<void()> start_now;
  std::function<void()> try_normally;
  std::function<void()> restart;
  std::function<void()> back;     // to this computer's core
  std::function<void()> dismiss;  // the message about crashes
};

class CoreWords {
  Q_DECLARE_TR_FUNCTIONS(neuroshard::gui::CoreWords)
 public:
  // Nothing: no banner.
  static std::optional<ui::BannerContent> banner(const CoreStatus& status, const CoreActions& actions);
  // While the window shows the core of another computer, a banner says so. data_directory: on that computer;
  // empty = not known yet. may_steer: false = the invitation permits to look only.
  static ui::BannerContent elsewhere(const QString& data_directory, bool may_steer,
                                     const std::function<void()>& back);
  // For the pill, the tray and its tooltip; nothing while a core answers.
  static std::optional<ui::CoreLife> life(const CoreStatus& status);
  // When the app quits while the core that it asked to end still runs.
  struct Farewell {
    QString title, text;
  };
  static Farewell farewell();
};

}  // namespace neuroshard::gui
