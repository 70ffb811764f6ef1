#include "ui/widgets/empty_state.h"

#include <QLabel>
#include <QPushButton>
#include <QVBoxLayout>

#include "ui/theme/theme.h"
#include "ui/widgets/card.h"

namespace neuroshard::ui {
namespace {
constexpr int icon_side = 36;
constexpr int text_width = 440;
}  // namespace

EmptyState::EmptyState(const Theme& theme, const QString& icon, const QString& title, const QString& text,
                       QWidget* parent)
    : QWidget(parent) {
  auto* column = new QVBoxLayout(this);
  column->setContentsMargins(16, 16, 16, 16);
  column->setSpacing(6);
  icon_ = new QLabel(this);
  const auto draw = [this, &theme, icon] { icon_->setPixmap(theme.icon(icon).pixmap(icon_side, icon_side)); };
  draw();
  connect(&theme, &Theme::changed, this, draw);
  title_ = make_paragraph({}, "strong", this);
  text_ = make_paragraph({}, "muted", this);
  for (QLabel* label : {title_, text_}) {
    label->setAlignment(Qt::AlignHCenter);
    label->setMaximumWidth(text_width);
    // Without a width of its own a wrapped label would break after every word.
    QSizePolicy policy(QSizePolicy::Preferred, QSizePolicy::Preferred);
    policy.setHeightForWidth(true);
    label->setSizePolicy(policy);
  }
  action_ = new QPushButton(this);
  action_->hide();
  connect(action_, &QPushButton::clicked, this, &EmptyState::action_clicked);
  column->addStretch(1);
  column->addWidget(icon_, 0, Qt::AlignHCenter);
  const auto centred = [column](QWidget* widget, int stretch) {
    auto* row = new QHBoxLayout;
    row->addStretch(1);
    row->addWidget(widget, stretch);
    row->addStretch(1);
    column->addLayout(row);
  };
  centred(title_, 100);
  centred(text_, 100);
  centred(action_, 0);
  column->addStretch(1);
  set_text(title, text);
}

void EmptyState::set_text(const QString& title, const QString& text) {
  title_->setText(title);
  text_->setText(text);
  text_->setVisible(!text.isEmpty());
}

void EmptyState::set_action(const QString& text) {
  action_->setText(text);
  action_->setVisible(!text.isEmpty());
}

}  // namespace neuroshard::ui
