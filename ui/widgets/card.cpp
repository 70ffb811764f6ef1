#include "ui/widgets/card.h"

#include <QHBoxLayout>
#include <QLabel>
#include <QResizeEvent>
#include <QStyle>
#include <QVBoxLayout>
#include <algorithm>
#include <vector>

namespace neuroshard::ui {

void set_role(QWidget* widget, const char* property, const QString& value) {
  if (widget->property(property).toString() == value) return;
  widget->setProperty(property, value);
  widget->style()->unpolish(widget);
  widget->style()->polish(widget);
}

QLabel* make_label(const QString& text, const char* role, QWidget* parent) {
  auto* label = new QLabel(text, parent);
  label->setTextFormat(Qt::PlainText);
  if (role != nullptr) label->setProperty("role", QString::fromLatin1(role));
  return label;
}

namespace {

// Lines that wrap need more height where they are narrow, and layouts inside a scroll area do not ask: they
// squeeze them. Layouts that do ask, do so many times for few widths, and each answer shapes the whole text:
// the last ones are kept.
class Paragraph final : public QLabel {
 public:
  using QLabel::QLabel;
  int heightForWidth(int width) const override {
    if (measured_ != text()) {
      measured_ = text();
      heights_.clear();
    }
    for (const auto& [asked, height] : heights_)
      if (asked == width) return height;
    const int height = QLabel::heightForWidth(width);
    if (heights_.size() == kept_heights) heights_.erase(heights_.begin());
    heights_.emplace_back(width, height);
    return height;
  }
  QSize minimumSizeHint() const override {
    const QSize least = QLabel::minimumSizeHint();
    return {least.width(), std::max(least.height(), heightForWidth(width()))};
  }

 protected:
  void resizeEvent(QResizeEvent* event) override {
    QLabel::resizeEvent(event);
    if (event->oldSize().width() != event->size().width()) updateGeometry();
  }
  void changeEvent(QEvent* event) override {
    heights_.clear();  // font, style sheet, direction
    QLabel::changeEvent(event);
  }

 private:
  static constexpr std::size_t kept_heights = 4;
  mutable QString measured_;  // the text that the heights are of
  mutable std::vector<std::pair<int, int>> heights_;
};

}  // namespace

QLabel* make_paragraph(const QString& text, const char* role, QWidget* parent) {
  auto* label = new Paragraph(text, parent);
  label->setTextFormat(Qt::PlainText);
  if (role != nullptr) label->setProperty("role", QString::fromLatin1(role));
  label->setWordWrap(true);
  return label;
}

Card::Card(const QString& title, QWidget* parent) : QFrame(parent) {
  setProperty("role", QStringLiteral("card"));
  auto* column = new QVBoxLayout(this);
  column->setContentsMargins(card_margin, card_margin - 2, card_margin, card_margin);
  column->setSpacing(grid_step);
  heading_ = new QHBoxLayout;
  heading_->setSpacing(grid_step);
  title_ = make_label({}, "card-title", this);
  caption_ = make_paragraph({}, "caption", this);
  caption_->hide();
  heading_->addWidget(title_);
  heading_->addWidget(caption_, 1);
  heading_->addStretch();  // without a caption
  column->addLayout(heading_);
  body_ = new QVBoxLayout;
  body_->setSpacing(grid_step);
  column->addLayout(body_, 1);
  set_title(title);
}

void Card::set_title(const QString& title) {
  title_->setText(title);
  title_->setVisible(!title.isEmpty());
}

QString Card::title() const {
  return title_->text();
}

void Card::set_caption(const QString& caption) {
  caption_->setText(caption);
  caption_->setVisible(!caption.isEmpty());
}

void Card::add_control(QWidget* control) {
  heading_->addWidget(control);
}

}  // namespace neuroshard::ui
