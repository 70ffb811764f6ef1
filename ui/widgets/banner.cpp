#include "ui/widgets/banner.h"

#include <QApplication>
#include <QClipboard>
#include <QHBoxLayout>
#include <QLabel>
#include <QPushButton>
#include <QToolButton>
#include <QVBoxLayout>

#include "ui/theme/theme.h"
#include "ui/widgets/card.h"
#include "ui/widgets/tone.h"

namespace neuroshard::ui {
namespace {

constexpr int icon_side = 24;

}  // namespace

Banner::Banner(const Theme& theme, QWidget* parent) : QFrame(parent), theme_(theme) {
  setProperty("role", QStringLiteral("banner"));
  auto* row = new QHBoxLayout(this);
  row->setContentsMargins(12, 10, 8, 10);
  row->setSpacing(12);
  icon_ = new QLabel(this);
  icon_->setFixedSize(icon_side, icon_side);
  row->addWidget(icon_, 0, Qt::AlignTop);
  auto* column = new QVBoxLayout;
  column->setSpacing(4);
  title_ = make_paragraph({}, "strong", this);
  text_ = make_paragraph({}, nullptr, this);
  details_ = make_paragraph({}, nullptr, this);
  details_->setFont(theme.monospace());
  details_->setTextInteractionFlags(Qt::TextSelectableByMouse | Qt::TextSelectableByKeyboard);
  details_->setAccessibleName(tr("Details"));
  details_->hide();
  actions_ = new QHBoxLayout;
  actions_->setSpacing(8);
  more_ = new QToolButton(this);
  more_->setText(tr("Details"));
  more_->setCheckable(true);
  connect(more_, &QToolButton::toggled, this, &Banner::show_details);
  column->addWidget(title_);
  column->addWidget(text_);
  column->addWidget(details_);
  column->addLayout(actions_);
  row->addLayout(column, 1);
  copy_ = new QToolButton(this);
  copy_->setIcon(theme.icon(QStringLiteral("copy")));
  copy_->setToolTip(tr("Copy this message"));
  copy_->setAccessibleName(tr("Copy this message"));
  connect(copy_, &QToolButton::clicked, this, &Banner::copy);
  close_ = new QToolButton(this);
  close_->setIcon(theme.icon(QStringLiteral("close")));
  close_->setToolTip(tr("Dismiss"));
  close_->setAccessibleName(tr("Dismiss this message"));
  connect(close_, &QToolButton::clicked, this, &Banner::closed);
  row->addWidget(copy_, 0, Qt::AlignTop);
  row->addWidget(close_, 0, Qt::AlignTop);
  connect(&theme_, &Theme::changed, this, [this] { set_content(BannerContent(content_)); });
}

void Banner::set_content(const BannerContent& content) {
  content_ = content;
  set_role(this, "tone", tone_name(content.tone));
  icon_->setPixmap(theme_.icon(icon_of(content.tone), token_of(content.tone)).pixmap(icon_side, icon_side));
  title_->setText(content.title);
  title_->setVisible(!content.title.isEmpty());
  text_->setText(content.text);
  text_->setVisible(!content.text.isEmpty());
  details_->setText(content.details);
  setAccessibleName(content.title);
  setAccessibleDescription(content.text);
  while (QLayoutItem* item = actions_->takeAt(0)) {
    if (item->widget() != nullptr && item->widget() != more_) item->widget()->deleteLater();
    delete item;
  }
  for (const BannerAction& action : content.actions) {
    auto* button = new QPushButton(action.text, this);
    if (action.primary) button->setProperty("role", QStringLiteral("primary"));
    connect(button, &QPushButton::clicked, this, [run = action.run] {
      if (run) run();
    });
    actions_->addWidget(button);
  }
  more_->setVisible(!content.details.isEmpty());
  if (content.details.isEmpty()) more_->setChecked(false);
  actions_->addWidget(more_);
  actions_->addStretch(1);
  close_->setVisible(content.can_close);
}

void Banner::show_details(bool shown) {
  details_->setVisible(shown);
}

void Banner::copy() {
  QString all = content_.title + QLatin1Char('\n') + content_.text;
  if (!content_.details.isEmpty()) all += QLatin1Char('\n') + content_.details;
  QApplication::clipboard()->setText(all);
}

}  // namespace neuroshard::ui
