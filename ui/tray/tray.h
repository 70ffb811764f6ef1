// The icon in the desktop's tray, with its menu. Works with both protocols that Qt speaks (StatusNotifier,
// XEmbed); without a tray it is simply not there, and one that appears later is used. Which protocol is
// spoken is settled by the first tray that is met: Qt does not change it afterwards.
#pragma once

#include <QObject>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>

#include "core/base/clock.h"
#include "core/node/node.h"
#include "ui/tray/tray_host.h"
#include "ui/tray/tray_text.h"

class QAction;
class QMenu;
class QSystemTrayIcon;

namespace neuroshard::ui {

class Bridge;
class Theme;

// Threads: ui.
class Tray final : public QObject {
  Q_OBJECT
 public:
  // All but the host outlive it.
  Tray(Bridge& bridge, const Theme& theme, const Clock& clock, std::unique_ptr<TrayHost> host,
       QObject* parent = nullptr);
  ~Tray() override;

  // Whether an icon can be seen now: there is a host for it. No, until it is known.
  bool available() const;
  bool known() const { return host_->known(); }
  // The state of a core that does not answer; nothing = it answers, or its state is unknown.
  void set_core_life(std::optional<CoreLife> life);
  // Shown by the desktop, if there is an icon.
  void notify(const QString& title, const QString& text, bool urgent);

  const TrayView& view() const { return view_; }
  QMenu* menu() const { return menu_.get(); }
  // Null until there was a tray.
  const QSystemTrayIcon* icon() const { return icon_.get(); }

 Q_SIGNALS:
  void open_requested();    // the menu
  void toggle_requested();  // a click on the icon
  void quit_requested();
  void available_changed(bool available);
  void found_out();  // once, when it became known; after available_changed
  void command_failed(const QString& what, const QString& why);

 private:
  void build_menu();
  void make_icon();
  void look_at_host();
  bool icon_can_be_seen();
  void refresh();
  void show_icon();
  void snooze(std::chrono::seconds duration);
  void send(const QString& what, std::function<Expected<node::CommandId>(node::Node&)> command);

  Bridge& bridge_;
  const Theme& theme_;
  const Clock& clock_;
  std::unique_ptr<TrayHost> host_;
  TrayProtocol protocol_ = TrayProtocol::None;  // that of the first tray
  bool available_ = false, told_ = false;
  std::optional<CoreLife> life_;
  TrayView view_;
  std::optional<DisplayState> shown_icon_;
  std::unique_ptr<QMenu> menu_;
  std::unique_ptr<QSystemTrayIcon> icon_;
  QAction *status_ = nullptr, *contribute_ = nullptr, *end_snooze_ = nullptr, *finish_ = nullptr;
  QMenu* snooze_ = nullptr;
};

}  // namespace neuroshard::ui
