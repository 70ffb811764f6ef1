#include "ui/widgets/gauge.h"

#include <QLabel>
#include <QPainter>
#include <QVBoxLayout>
#include <algorithm>

#include "ui/text/format.h"
#include "ui/theme/theme.h"
#include "ui/widgets/card.h"
#include "ui/widgets/tabular_text.h"

namespace neuroshard::ui {
namespace {
constexpr double high = 0.85;
constexpr int bar_height = 8;
constexpr int gauge_pixels = 18, fact_pixels = 24;
}  // namespace

Gauge::Gauge(const Theme& theme, const QString& caption, QWidget* parent) : QWidget(parent), theme_(theme) {
  auto* column = new QVBoxLayout(this);
  column->setContentsMargins(0, 0, 0, 0);
  column->setSpacing(4);
  caption_ = make_label(caption, "caption", this);
  value_ = new NumberLabel(theme, gauge_pixels, this);
  bar_ = new QWidget(this);
  bar_->setFixedHeight(bar_height);
  note_ = make_paragraph({}, "caption", this);
  column->addWidget(caption_);
  column->addWidget(value_);
  column->addWidget(bar_);
  column->addWidget(note_);
  column->addStretch(1);
  connect(&theme, &Theme::changed, this, qOverload<>(&QWidget::update));
  set(Format::dash(), std::nullopt, {});
}

QString Gauge::value() const {
  return value_->text();
}

void Gauge::set(const QString& value, std::optional<double> share, const QString& note) {
  value_->set_text(value);
  QString text = note;
  if (warns_ && share && *share >= high)
    text = note.isEmpty() ? tr("nearly full") : tr("nearly full: %1").arg(note);
  if (note_->text() != text) note_->setText(text);
  setAccessibleName(tr("%1: %2").arg(caption_->text(), value));
  setAccessibleDescription(text);
  if (share == share_) return;
  share_ = share;
  update();
}

void Gauge::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  painter.setRenderHint(QPainter::Antialiasing);
  painter.setPen(Qt::NoPen);
  const QRectF track = bar_->geometry();
  painter.setBrush(theme_.color(Token::SurfaceAlt));
  painter.drawRoundedRect(track, bar_height / 2.0, bar_height / 2.0);
  if (!share_ || *share_ <= 0) return;
  const Token token = !warns_           ? Token::Accent
                      : *share_ >= 1    ? Token::Danger
                      : *share_ >= high ? Token::Warning
                                        : Token::Accent;
  QRectF filled = track;
  filled.setWidth(std::max<qreal>(bar_height, track.width() * std::min(*share_, 1.0)));
  if (layoutDirection() == Qt::RightToLeft) filled.moveRight(track.right());
  painter.setBrush(theme_.color(token));
  painter.drawRoundedRect(filled, bar_height / 2.0, bar_height / 2.0);
}

Fact::Fact(const Theme& theme, const QString& caption, QWidget* parent) : QWidget(parent), caption_(caption) {
  auto* column = new QVBoxLayout(this);
  column->setContentsMargins(0, 0, 0, 0);
  column->setSpacing(2);
  column->addWidget(make_label(caption, "caption", this));
  value_ = new NumberLabel(theme, fact_pixels, this);
  column->addWidget(value_);
  note_ = make_paragraph({}, "caption", this);
  column->addWidget(note_);
  column->addStretch(1);
  set(Format::dash());
}

QString Fact::value() const {
  return value_->text();
}

void Fact::set(const QString& value, const QString& note) {
  value_->set_text(value);
  if (note_->text() != note) note_->setText(note);
  note_->setVisible(!note.isEmpty());
  setAccessibleName(tr("%1: %2").arg(caption_, value));
}

}  // namespace neuroshard::ui
