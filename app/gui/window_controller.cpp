#include "app/gui/window_controller.h"

#include <QMessageBox>
#include <QPushButton>
#include <utility>

namespace neuroshard::gui {

WindowController::WindowController(ui::MainWindow& window, ui::Tray& tray, UserConfig& config,
                                   const ui::Preferences& preferences)
    : window_(window), tray_(tray), config_(config), preferences_(preferences) {
  connect(&tray_, &ui::Tray::open_requested, this, &WindowController::show);
  connect(&tray_, &ui::Tray::toggle_requested, this, &WindowController::toggle);
  connect(&tray_, &ui::Tray::available_changed, this, &WindowController::on_tray);
}

void WindowController::begin(bool minimized) {
  restore();
  if (!minimized) {
    window_.show();
  } else if (tray_.known()) {
    begin_minimized();
  } else {
    connect(&tray_, &ui::Tray::found_out, this, &WindowController::begin_minimized);
  }
}

// Without an icon a hidden window would be lost; with one, a window that only stands for it is in the way.
void WindowController::on_tray(bool available) {
  if (!available && !window_.isVisible()) show_for_icon();
  if (available && std::exchange(stands_for_icon_, false) && window_.isMinimized()) window_.hide();
}

void WindowController::close_asked() {
  save();
  if (!tray_.available() || !preferences_.close_to_tray()) return ask_on_close();
  if (!config_.told_tray()) {
    config_.set_told_tray();
    tray_.notify(tr("NeuroShard keeps running"),
                 tr("The window is closed. Click the tray icon to open it again, or to quit."), false);
  }
  window_.hide();
}

// Nowhere to come back from: ask, so that the window is never lost and training never stopped unasked.
void WindowController::ask_on_close() {
  QMessageBox question(
      QMessageBox::Question, tr("Close NeuroShard?"),
      tr("Training can continue with the window minimised. If you quit, the core writes a last checkpoint."),
      QMessageBox::Cancel, &window_);
  question.setObjectName("closeQuestion");
  QPushButton* keep = question.addButton(tr("Keep running minimised"), QMessageBox::AcceptRole);
  QPushButton* leave = question.addButton(tr("Quit"), QMessageBox::DestructiveRole);
  question.setDefaultButton(keep);
  question.exec();
  const QAbstractButton* answer = question.clickedButton();
  if (answer == static_cast<QAbstractButton*>(keep)) window_.showMinimized();
  if (answer == static_cast<QAbstractButton*>(leave)) Q_EMIT quit_requested();
}

void WindowController::toggle() {
  if (window_.isVisible() && !window_.isMinimized() && window_.isActiveWindow()) {
    window_.hide();
  } else {
    show();
  }
}

// The user may have opened the window before the desktop said whether it has a tray.
void WindowController::begin_minimized() {
  if (!tray_.available() && !window_.isVisible()) show_for_icon();
}

void WindowController::show_for_icon() {
  stands_for_icon_ = true;
  window_.showMinimized();
}

void WindowController::show() {
  stands_for_icon_ = false;
  if (window_.isMinimized()) window_.setWindowState(window_.windowState() & ~Qt::WindowMinimized);
  window_.show();
  window_.raise();
  window_.activateWindow();
}

void WindowController::restore() {
  if (!config_.geometry().isEmpty()) window_.restoreGeometry(config_.geometry());
  if (!config_.window_state().isEmpty()) window_.restoreState(config_.window_state());
  if (window_.page_keys().contains(config_.page())) window_.open_page(config_.page());
}

void WindowController::save() {
  config_.set_window(window_.saveGeometry(), window_.saveState(), window_.current_page());
}

}  // namespace neuroshard::gui
