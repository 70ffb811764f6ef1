// Shows what is new, once, when the program runs with a newer version than ever before; and whenever somebody asks.
//
// Threads: ui.
#pragma once

#include <QObject>
#include <optional>

#include "app/gui/user_config.h"
#include "core/base/version.h"
#include "ui/window/main_window.h"

namespace neuroshard::gui {

class NewsController final : public QObject {
  Q_OBJECT
 public:
  // Remembers the version. At the very first start nothing is new. Both outlive it.
  NewsController(UserConfig& config, ui::MainWindow& window, const QString& running);

  // For a timer: shows what is new as soon as somebody sees the window and nothing else is asked.
  void tick();
  // The notes of this version and of all before it.
  void show_all();

 private:
  void show(const Version& before);

  UserConfig& config_;
  ui::MainWindow& window_;
  std::optional<Version> running_;
  std::optional<Version> before_;  // what is new since then waits to be shown
};

}  // namespace neuroshard::gui
