// The top of the window: page title, what the node does and why, and the controls that steer it: run anyway,
// snooze, contribute, menu.
#pragma once

#include <QWidget>
#include <chrono>
#include <functional>

#include "core/node/node.h"
#include "ui/pages/page.h"
#include "ui/text/state_text.h"

class QLabel;
class QMenu;
class QPushButton;
class QToolButton;

namespace neuroshard::ui {

class ToggleSwitch;

class Header final : public QWidget {
  Q_OBJECT
 public:
  explicit Header(const Page::Context& context, QWidget* parent = nullptr);

  void set_title(const QString& title);
  // snapshot may be null: no core has answered yet.
  void refresh(const node::Snapshot* snapshot, bool attached);
  // For a narrow window: the reason moves into the tooltip, and buttons have no text.
  void set_narrow(bool narrow);
  QMenu* menu() const { return menu_; }

 Q_SIGNALS:
  // A command was refused or failed.
  void command_failed(const QString& what, const QString& why);

 protected:
  void resizeEvent(QResizeEvent* event) override;

 private:
  void build_snooze_menu();
  void send(const QString& what, std::function<Expected<node::CommandId>(node::Node&)> command);
  void snooze(std::chrono::seconds duration);
  void show_reasons();
  void fit();

  Page::Context context_;
  StateText state_;
  QString shown_icon_;
  bool narrow_ = false;
  bool sending_ = false;  // a command of the switch is under way: it shows what was asked for
  QLabel* title_;
  QToolButton* pill_;
  QPushButton* anyway_;
  QToolButton* snooze_;
  QMenu* snooze_menu_;
  QAction* end_snooze_;
  ToggleSwitch* contribute_;
  QToolButton* more_;
  QMenu* menu_;
  QAction* finish_;
};

}  // namespace neuroshard::ui
