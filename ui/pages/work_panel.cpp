#include "ui/pages/work_panel.h"

#include <QHBoxLayout>
#include <QLabel>
#include <QProgressBar>
#include <QPushButton>

#include "ui/text/format.h"
#include "ui/widgets/banner.h"
#include "ui/widgets/card.h"

namespace neuroshard::ui {

WorkPanel::WorkPanel(Bridge& bridge, const Theme& theme, QWidget* parent) : QWidget(parent), bridge_(bridge) {
  auto* column = new QVBoxLayout(this);
  column->setContentsMargins(0, 0, 0, 0);
  column->setSpacing(grid_step);
  row_ = new Card({}, this);
  auto* line = new QHBoxLayout;
  auto* words = new QVBoxLayout;
  words->setSpacing(grid_step / 2);
  title_ = make_label({}, "strong", row_);
  title_->setObjectName(QStringLiteral("work_title"));
  detail_ = make_label({}, "caption", row_);
  bar_ = new QProgressBar(row_);
  bar_->setObjectName(QStringLiteral("work_progress"));
  bar_->setTextVisible(false);
  words->addWidget(title_);
  words->addWidget(bar_);
  words->addWidget(detail_);
  line->addLayout(words, 1);
  auto* cancel = new QPushButton(tr("Cancel"), row_);
  cancel->setObjectName(QStringLiteral("work_cancel"));
  connect(cancel, &QPushButton::clicked, this, &WorkPanel::cancel);
  cancel_ = cancel;
  line->addWidget(cancel, 0, Qt::AlignVCenter);
  static_cast<Card*>(row_)->body()->addLayout(line);
  outcome_ = new Banner(theme, this);
  outcome_->setObjectName(QStringLiteral("work_outcome"));
  connect(outcome_, &Banner::closed, this, [this] {
    keeps_outcome_ = false;
    outcome_->hide();
  });
  column->addWidget(row_);
  column->addWidget(outcome_);
  row_->hide();
  outcome_->hide();
  hide();
}

void WorkPanel::run(Work work) {
  if (waiting_.size() >= max_waiting) {
    say(Tone::Warning, tr("Too many tasks are waiting"), tr("Wait until some are done, then try again."));
    return;
  }
  if (!busy() && waiting_.empty()) keeps_outcome_ = false;
  waiting_.push_back(std::move(work));
  if (busy())
    show_title();
  else
    start_next();
}

void WorkPanel::start_next() {
  if (waiting_.empty()) {
    row_->hide();
    setVisible(!outcome_->isHidden());
    return;
  }
  Work work = std::move(waiting_.front());
  waiting_.pop_front();
  current_title_ = work.title;
  show_title();
  bar_->setRange(0, 0);
  bar_->setAccessibleName(work.title);
  detail_->clear();
  cancel_->setVisible(work.can_cancel);
  cancel_->setEnabled(true);
  row_->show();
  show();
  const Bridge::Command command = work.command;
  current_ticket_ = bridge_.run(
      this, command,
      [this, work = std::move(work)](const Expected<node::CommandResult>& result) { done(work, result); },
      [this](const node::CommandProgress& at) { progress(at); });
}

void WorkPanel::show_title() {
  const int more = static_cast<int>(waiting_.size());
  title_->setText(more == 0 ? current_title_ : tr("%1 (%n more to do)", nullptr, more).arg(current_title_));
}

void WorkPanel::done(const Work& work, const Expected<node::CommandResult>& result) {
  current_ticket_ = 0;
  const bool cancelled = !result.ok() && result.error().code == ErrorCode::Cancelled;
  const QString success = result.ok() && work.success ? work.success(*result) : QString();
  if (!success.isEmpty() && !keeps_outcome_) say(Tone::Working, work.title, success);
  if (cancelled) {
    std::erase_if(waiting_, [&work](const Work& other) {
      return !work.action.isEmpty() && other.action == work.action;
    });
    if (!keeps_outcome_) say(Tone::Paused, tr("%1: cancelled").arg(work.title), tr("Nothing was changed."));
  } else if (!result.ok()) {
    say(Tone::Danger, tr("%1 failed").arg(work.title), QString::fromStdString(result.error().message));
  }
  if (work.is_long && !cancelled) {
    const BannerContent& shown = outcome_->content();
    if (success.isEmpty())
      Q_EMIT long_work_ended(shown.title, shown.text);
    else
      Q_EMIT long_work_ended(work.title, success);
  }
  Q_EMIT finished();
  start_next();
}

void WorkPanel::progress(const node::CommandProgress& at) {
  detail_->setText(QString::fromStdString(at.activity));
  if (at.total == 0) {
    bar_->setRange(0, 0);
    return;
  }
  bar_->setRange(0, 1000);
  bar_->setValue(
      static_cast<int>(std::min(1.0, static_cast<double>(at.done) / static_cast<double>(at.total)) * 1000));
}

void WorkPanel::cancel() {
  cancel_->setEnabled(false);
  detail_->setText(tr("ending …"));
  bridge_.cancel(current_ticket_);
}

void WorkPanel::say(Tone tone, const QString& title, const QString& text) {
  BannerContent content;
  content.tone = tone;
  content.title = title;
  content.text = text;
  content.can_close = true;
  outcome_->set_content(content);
  keeps_outcome_ = tone == Tone::Danger;
  outcome_->show();
  show();
}

}  // namespace neuroshard::ui
