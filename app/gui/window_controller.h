// The window on the desktop: when it is shown, hidden or minimised, and what closing it means. With a tray
// icon the window hides; without one it is minimised or the user is asked, so that the window is never lost.
//
// Threads: ui.
#pragma once

#include <QObject>

#include "app/gui/user_config.h"
#include "ui/models/preferences.h"
#include "ui/tray/tray.h"
#include "ui/window/main_window.h"

namespace neuroshard::gui {

class WindowController final : public QObject {
  Q_OBJECT
 public:
  // All outlive it.
  WindowController(ui::MainWindow& window, ui::Tray& tray, UserConfig& config,
                   const ui::Preferences& preferences);

  // At the start of the program: size, place and page as they were saved.
  void begin(bool minimized);
  void show();
  void toggle();
  void save();
  // The user closes the window. Hides or minimises it, or asks; never closes it.
  void close_asked();

 Q_SIGNALS:
  void quit_requested();

 private:
  void restore();
  void begin_minimized();
  void show_for_icon();
  void on_tray(bool available);
  void ask_on_close();

  ui::MainWindow& window_;
  ui::Tray& tray_;
  UserConfig& config_;
  const ui::Preferences& preferences_;
  bool stands_for_icon_ = false;  // minimised by the app, for want of a tray
};

}  // namespace neuroshard::gui
