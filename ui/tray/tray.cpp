#include "ui/tray/tray.h"

#include <QMenu>
#include <QSystemTrayIcon>

#include "ui/bridge/bridge.h"
#include "ui/text/snooze.h"
#include "ui/theme/theme.h"

namespace neuroshard::ui {
namespace {

constexpr int message_ms = 10000;

}  // namespace

Tray::Tray(Bridge& bridge, const Theme& theme, const Clock& clock, std::unique_ptr<TrayHost> host,
           QObject* parent)
    : QObject(parent), bridge_(bridge), theme_(theme), clock_(clock), host_(std::move(host)) {
  build_menu();
  connect(&bridge_, &Bridge::snapshot_changed, this, &Tray::refresh);
  connect(&bridge_, &Bridge::attached_changed, this, &Tray::refresh);
  connect(&theme_, &Theme::changed, this, [this] {
    shown_icon_.reset();
    refresh();
  });
  // It may come after the app (the desktop is still starting), go (the panel crashed) and come back.
  connect(host_.get(), &TrayHost::changed, this, &Tray::look_at_host);
  if (host_->known()) look_at_host();
  refresh();
}

Tray::~Tray() = default;

bool Tray::available() const {
  return available_;
}

void Tray::make_icon() {
  icon_ = std::make_unique<QSystemTrayIcon>();
  icon_->setContextMenu(menu_.get());
  connect(icon_.get(), &QSystemTrayIcon::activated, this, [this](QSystemTrayIcon::ActivationReason reason) {
    if (reason == QSystemTrayIcon::Trigger) Q_EMIT toggle_requested();
  });
  connect(icon_.get(), &QSystemTrayIcon::messageClicked, this, &Tray::open_requested);
  shown_icon_.reset();
}

bool Tray::icon_can_be_seen() {
  if (protocol_ == TrayProtocol::None) protocol_ = host_->protocol();
  // Not every platform plugin of Qt has icons; it is asked only when there is a host, for the reason in
  // TrayHost.
  return host_->speaks(protocol_) && QSystemTrayIcon::isSystemTrayAvailable();
}

void Tray::look_at_host() {
  const bool now = icon_can_be_seen();
  if (std::exchange(available_, now) != now) {
    if (now) {
      make_icon();
      show_icon();
    }
    Q_EMIT available_changed(now);
  }
  if (!std::exchange(told_, true)) Q_EMIT found_out();
}

void Tray::build_menu() {
  menu_ = std::make_unique<QMenu>();
  menu_->setObjectName("trayMenu");
  status_ = menu_->addAction(QString());
  status_->setEnabled(false);
  menu_->addSeparator();
  contribute_ = menu_->addAction(tr("Contribute"));
  contribute_->setCheckable(true);
  connect(contribute_, &QAction::triggered, this, [this](bool on) {
    send(on ? tr("Switching contributing on") : tr("Switching contributing off"),
         [on](node::Node& node) { return node.set_contributing(on); });
  });
  snooze_ = menu_->addMenu(tr("Snooze"));
  snooze_->setIcon(theme_.icon("snooze"));
  for (const Snooze::Choice& choice : Snooze::choices())
    snooze_->addAction(choice.text, this,
                       [this, duration = choice.duration] { snooze(duration(clock_.wall_now())); });
  end_snooze_ = snooze_->addAction(tr("End snooze"), this, [this] {
    send(tr("Ending the snooze"), [](node::Node& node) { return node.set_contributing(true); });
  });
  QAction* gpu = menu_->addAction(tr("Pause GPU only (this version uses only the processor)"));
  gpu->setEnabled(false);
  finish_ = menu_->addAction(StateWords::finish_action(nullptr), this, [this] {
    send(tr("Finishing"), [](node::Node& node) { return node.finish(); });
  });
  menu_->addSeparator();
  QAction* open = menu_->addAction(tr("Open NeuroShard"), this, &Tray::open_requested);
  menu_->setDefaultAction(open);
  menu_->addAction(tr("Quit"), this, &Tray::quit_requested);
}

void Tray::set_core_life(std::optional<CoreLife> life) {
  life_ = std::move(life);
  refresh();
}

void Tray::refresh() {
  const auto snapshot = bridge_.snapshot();
  const bool attached = bridge_.attached() && snapshot != nullptr;
  const TrayView before =
      std::exchange(view_, TrayWords::describe(snapshot.get(), attached, life_, clock_.wall_now()));
  const bool can_steer = attached && bridge_.may_steer() && !snapshot->safe_mode;
  contribute_->setEnabled(can_steer);
  contribute_->setChecked(attached && snapshot->contributing);
  snooze_->setEnabled(can_steer && snapshot->contributing);
  end_snooze_->setVisible(attached && snapshot->snoozed_until.has_value());
  finish_->setEnabled(can_steer && snapshot->state == node::RunState::Training && !snapshot->finishing);
  finish_->setText(StateWords::finish_action(snapshot.get()));
  if (before.status != view_.status || status_->text().isEmpty()) status_->setText(view_.status);
  show_icon();
  if (icon_ != nullptr && before.tooltip != view_.tooltip) icon_->setToolTip(view_.tooltip);
}

void Tray::show_icon() {
  if (icon_ == nullptr || shown_icon_ == view_.display) return;
  shown_icon_ = view_.display;
  // In its own colours: a tray's background is not ours.
  icon_->setIcon(QIcon(":/icons/" + tray_icon_name(view_.display) + ".svg"));
  icon_->setToolTip(view_.tooltip);
  icon_->show();
}

void Tray::snooze(std::chrono::seconds duration) {
  send(tr("Snoozing"), [duration](node::Node& node) { return node.snooze(duration); });
}

void Tray::send(const QString& what, std::function<Expected<node::CommandId>(node::Node&)> command) {
  bridge_.run(this, std::move(command), [this, what](const Expected<node::CommandResult>& outcome) {
    refresh();  // the check mark follows the core, not the click
    if (!outcome.ok()) Q_EMIT command_failed(what, QString::fromStdString(outcome.error().describe()));
  });
}

void Tray::notify(const QString& title, const QString& text, bool urgent) {
  if (!available_) return;
  icon_->showMessage(title, text, urgent ? QSystemTrayIcon::Critical : QSystemTrayIcon::Information,
                     message_ms);
}

}  // namespace neuroshard::ui
