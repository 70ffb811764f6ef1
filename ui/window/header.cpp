#include "ui/window/header.h"

#include <QHBoxLayout>
#include <QLabel>
#include <QMenu>
#include <QPushButton>
#include <QToolButton>

#include "ui/bridge/bridge.h"
#include "ui/text/snooze.h"
#include "ui/theme/theme.h"
#include "ui/widgets/card.h"
#include "ui/widgets/toggle_switch.h"
#include "ui/widgets/tone.h"

namespace neuroshard::ui {
namespace {

constexpr int header_height = 56;
constexpr std::chrono::hours override_duration{1};

}  // namespace

Header::Header(const Page::Context& context, QWidget* parent) : QWidget(parent), context_(context) {
  setObjectName(QStringLiteral("header"));
  setAttribute(Qt::WA_StyledBackground);
  setFixedHeight(header_height);
  auto* row = new QHBoxLayout(this);
  row->setContentsMargins(16, 0, 12, 0);
  row->setSpacing(8);
  title_ = make_label({}, "page-title", this);
  row->addWidget(title_);
  row->addStretch(1);
  pill_ = new QToolButton(this);
  pill_->setObjectName(QStringLiteral("state_pill"));
  pill_->setProperty("role", QStringLiteral("pill"));
  pill_->setToolButtonStyle(Qt::ToolButtonTextBesideIcon);
  connect(pill_, &QToolButton::clicked, this, &Header::show_reasons);
  row->addWidget(pill_);
  anyway_ = new QPushButton(tr("Run anyway"), this);
  anyway_->setObjectName(QStringLiteral("run_anyway"));
  anyway_->setToolTip(tr("Ignores the rules that pause training for one hour"));
  connect(anyway_, &QPushButton::clicked, this, [this] {
    send(tr("Run anyway"), [](node::Node& node) { return node.override_rules(override_duration); });
  });
  row->addWidget(anyway_);
  snooze_ = new QToolButton(this);
  snooze_->setObjectName(QStringLiteral("snooze"));
  snooze_->setText(tr("Snooze"));
  snooze_->setIcon(context_.theme.icon(QStringLiteral("snooze")));
  snooze_->setToolButtonStyle(Qt::ToolButtonTextBesideIcon);
  snooze_->setPopupMode(QToolButton::InstantPopup);
  snooze_->setToolTip(tr("Pauses for a while; training resumes by itself"));
  snooze_->setAccessibleName(tr("Snooze"));
  build_snooze_menu();
  row->addWidget(snooze_);
  contribute_ = new ToggleSwitch(context_.theme, tr("Contribute"), this);
  contribute_->setObjectName(QStringLiteral("contribute"));
  contribute_->setToolTip(
      tr("When off, training stays paused until you switch it on again, even after a restart"));
  contribute_->setAccessibleName(tr("Contribute"));
  connect(contribute_, &QAbstractButton::clicked, this, [this](bool on) {
    send(on ? tr("Switching contributing on") : tr("Switching contributing off"),
         [on](node::Node& node) { return node.set_contributing(on); });
  });
  row->addWidget(contribute_);
  more_ = new QToolButton(this);
  more_->setObjectName(QStringLiteral("main_menu"));
  more_->setIcon(context_.theme.icon(QStringLiteral("menu")));
  more_->setPopupMode(QToolButton::InstantPopup);
  more_->setToolTip(tr("Menu"));
  more_->setAccessibleName(tr("Menu"));
  menu_ = new QMenu(this);
  more_->setMenu(menu_);
  finish_ = menu_->addAction(
      context_.theme.icon(QStringLiteral("finish")), StateWords::finish_action(nullptr), this,
      [this] { send(tr("Finishing"), [](node::Node& node) { return node.finish(); }); });
  finish_->setObjectName(QStringLiteral("finish"));
  row->addWidget(more_);
  refresh(nullptr, context_.bridge.attached());
}

void Header::build_snooze_menu() {
  snooze_menu_ = new QMenu(this);
  for (const Snooze::Choice& choice : Snooze::choices())
    snooze_menu_->addAction(choice.text, this, [this, duration = choice.duration] {
      snooze(duration(context_.clock.wall_now()));
    });
  snooze_menu_->addSeparator();
  end_snooze_ = snooze_menu_->addAction(tr("End snooze"), this, [this] {
    send(tr("Ending the snooze"), [](node::Node& node) { return node.set_contributing(true); });
  });
  snooze_->setMenu(snooze_menu_);
}

void Header::send(const QString& what, std::function<Expected<node::CommandId>(node::Node&)> command) {
  sending_ = true;
  context_.bridge.run(this, std::move(command), [this, what](const Expected<node::CommandResult>& outcome) {
    sending_ = false;
    if (!outcome.ok()) Q_EMIT command_failed(what, QString::fromStdString(outcome.error().message));
    refresh(context_.bridge.snapshot().get(), context_.bridge.attached());
  });
}

void Header::snooze(std::chrono::seconds duration) {
  send(tr("Snoozing"), [duration](node::Node& node) { return node.snooze(duration); });
}

void Header::set_title(const QString& title) {
  title_->setText(title);
  fit();
}

void Header::refresh(const node::Snapshot* snapshot, bool attached) {
  state_ = StateWords::describe(snapshot, attached, context_.core_life(), context_.clock.wall_now());
  set_role(pill_, "tone", tone_name(state_.tone));
  if (shown_icon_ != state_.icon) {
    shown_icon_ = state_.icon;
    pill_->setIcon(context_.theme.icon(state_.icon, token_of(state_.tone)));
  }
  const QString all = state_.reason.isEmpty() ? state_.word : tr("%1: %2").arg(state_.word, state_.reason);
  pill_->setAccessibleName(tr("State: %1").arg(all));
  QStringList lines = state_.reasons;
  if (lines.isEmpty() && !state_.reason.isEmpty()) lines << state_.reason;
  pill_->setToolTip(lines.isEmpty() ? state_.word : lines.join(QLatin1Char('\n')));
  const bool usable = attached && snapshot != nullptr;
  const bool can_steer = usable && context_.bridge.may_steer();
  contribute_->setEnabled(can_steer && !snapshot->safe_mode);
  snooze_->setEnabled(contribute_->isEnabled() && snapshot->contributing);
  finish_->setEnabled(contribute_->isEnabled());
  anyway_->setVisible(can_steer && state_.can_override && snapshot->state == node::RunState::Paused);
  end_snooze_->setVisible(usable && snapshot->snoozed_until.has_value());
  finish_->setText(StateWords::finish_action(snapshot));
  if (usable && !sending_) contribute_->setChecked(snapshot->contributing);
  fit();
}

void Header::set_narrow(bool narrow) {
  if (narrow == narrow_) return;
  narrow_ = narrow;
  snooze_->setToolButtonStyle(narrow ? Qt::ToolButtonIconOnly : Qt::ToolButtonTextBesideIcon);
  fit();
}

void Header::resizeEvent(QResizeEvent* event) {
  QWidget::resizeEvent(event);
  fit();
}

// The pill takes what the others leave; its reason is shortened with dots, and whole in the tooltip.
void Header::fit() {
  const QFontMetrics metrics(pill_->font());
  int others = 16 + 12 + title_->sizeHint().width();
  for (const QWidget* widget : {static_cast<QWidget*>(anyway_), static_cast<QWidget*>(snooze_),
                                static_cast<QWidget*>(contribute_), static_cast<QWidget*>(more_)})
    if (!widget->isHidden()) others += widget->sizeHint().width() + 8;
  constexpr int pill_frame = 64;  // icon, padding, spacing
  const int room = width() - others - pill_frame - 16;
  QString text = state_.word;
  if (!state_.reason.isEmpty()) {
    const QString all = tr("%1: %2").arg(state_.word, state_.reason);
    // Half a reason is less useful than none.
    if (metrics.horizontalAdvance(state_.word) + 60 < room)
      text = metrics.elidedText(all, Qt::ElideRight, room);
  }
  if (pill_->text() != text) pill_->setText(text);
}

void Header::show_reasons() {
  QMenu menu(this);
  QStringList lines = state_.reasons;
  if (lines.isEmpty()) lines << (state_.reason.isEmpty() ? state_.word : state_.reason);
  for (const QString& line : lines) menu.addAction(line)->setEnabled(false);
  menu.exec(pill_->mapToGlobal(QPoint(0, pill_->height() + 4)));
}

}  // namespace neuroshard::ui
