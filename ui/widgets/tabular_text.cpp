#include "ui/widgets/tabular_text.h"

#include <QPainter>
#include <cmath>

#include "ui/theme/theme.h"

namespace neuroshard::ui {
namespace {

qreal digit_width(const QFontMetricsF& metrics) {
  qreal widest = 0;
  for (char digit = '0'; digit <= '9'; ++digit)
    widest = std::max(widest, metrics.horizontalAdvance(QLatin1Char(digit)));
  return widest;
}

// The text in pieces: single digits, and runs of anything else.
template <class Piece>
void for_each_piece(const QString& text, Piece piece) {
  qsizetype at = 0;
  while (at < text.size()) {
    qsizetype end = at + 1;
    const bool digit = text[at].isDigit();
    while (!digit && end < text.size() && !text[end].isDigit()) ++end;
    piece(text.mid(at, end - at), digit);
    at = end;
  }
}

}  // namespace

qreal tabular_width(const QString& text, const QFontMetricsF& metrics) {
  const qreal cell = digit_width(metrics);
  qreal width = 0;
  for_each_piece(text, [&](const QString& piece, bool digit) {
    width += digit ? cell : metrics.horizontalAdvance(piece);
  });
  return width;
}

void draw_tabular(QPainter& painter, const QRectF& rect, Qt::Alignment alignment, const QString& text) {
  const QFontMetricsF metrics(painter.font());
  const qreal cell = digit_width(metrics);
  const qreal width = tabular_width(text, metrics);
  // Numbers with their units run from left to right in every language; piece by piece they would be turned.
  const Qt::LayoutDirection direction = painter.layoutDirection();
  painter.setLayoutDirection(Qt::LeftToRight);
  qreal x = rect.left();
  if (alignment.testFlag(Qt::AlignRight)) x = rect.right() - width;
  if (alignment.testFlag(Qt::AlignHCenter)) x = rect.center().x() - width / 2;
  qreal y = rect.top() + metrics.ascent();
  if (alignment.testFlag(Qt::AlignVCenter))
    y = rect.center().y() + (metrics.ascent() - metrics.descent()) / 2;
  if (alignment.testFlag(Qt::AlignBottom)) y = rect.bottom() - metrics.descent();
  for_each_piece(text, [&](const QString& piece, bool digit) {
    const qreal advance = metrics.horizontalAdvance(piece);
    painter.drawText(QPointF(digit ? x + (cell - advance) / 2 : x, y), piece);
    x += digit ? cell : advance;
  });
  painter.setLayoutDirection(direction);
}

NumberLabel::NumberLabel(const Theme& theme, int pixel_size, QWidget* parent)
    : QWidget(parent), theme_(theme) {
  QFont big = font();
  big.setPixelSize(pixel_size);
  big.setWeight(QFont::DemiBold);
  setFont(big);
  setSizePolicy(QSizePolicy::Preferred, QSizePolicy::Fixed);
  connect(&theme, &Theme::changed, this, qOverload<>(&QWidget::update));
}

void NumberLabel::set_text(const QString& text) {
  if (text == text_) return;
  const QSize before = sizeHint();
  text_ = text;
  setAccessibleName(text);
  if (sizeHint() != before) updateGeometry();
  update();
}

void NumberLabel::set_dimmed(bool dimmed) {
  if (dimmed == dimmed_) return;
  dimmed_ = dimmed;
  update();
}

QSize NumberLabel::sizeHint() const {
  const QFontMetricsF metrics(font());
  return {static_cast<int>(std::ceil(tabular_width(text_, metrics))),
          static_cast<int>(std::ceil(metrics.height()))};
}

void NumberLabel::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  painter.setFont(font());
  painter.setPen(theme_.color(dimmed_ ? Token::TextMuted : Token::Text));
  const bool rtl = layoutDirection() == Qt::RightToLeft;
  draw_tabular(painter, rect(), (rtl ? Qt::AlignRight : Qt::AlignLeft) | Qt::AlignVCenter, text_);
}

}  // namespace neuroshard::ui
