#include "ui/widgets/share_bar.h"

#include <QPainter>
#include <QPainterPath>
#include <algorithm>
#include <cmath>

#include "ui/text/format.h"
#include "ui/theme/theme.h"
#include "ui/widgets/tabular_text.h"

namespace neuroshard::ui {
namespace {
constexpr int bar_height = 24, line_height = 24, top_gap = 12, dot = 10;
}  // namespace

ShareBar::ShareBar(const Theme& theme, const QString& accessible_name, QWidget* parent)
    : QWidget(parent), theme_(theme) {
  setAccessibleName(accessible_name);
  setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Fixed);
  connect(&theme, &Theme::changed, this, qOverload<>(&QWidget::update));
}

double ShareBar::sum() const {
  double total = 0;
  for (const SharePart& part : parts_) total += std::max(0.0, part.value);
  return total;
}

void ShareBar::set_parts(std::vector<SharePart> parts) {
  if (parts == parts_) return;
  const bool resized = parts.size() != parts_.size();
  parts_ = std::move(parts);
  const double total = sum();
  QStringList words;
  for (const SharePart& part : parts_)
    words << tr("%1: %2, %3")
                 .arg(part.name, part.text, total > 0 ? Format::percent(part.value / total) : Format::dash());
  setAccessibleDescription(words.join(QStringLiteral("; ")));
  if (resized) updateGeometry();
  update();
}

QSize ShareBar::sizeHint() const {
  return {320, bar_height + top_gap + line_height * static_cast<int>(parts_.size())};
}

QSize ShareBar::minimumSizeHint() const {
  const QFontMetricsF metrics(font());
  double widest = 160;
  for (const SharePart& part : parts_)
    widest = std::max(widest, dot + 8 + metrics.horizontalAdvance(part.name) +
                                  metrics.horizontalAdvance(part.text) +
                                  metrics.horizontalAdvance(QStringLiteral("100 %")) + 40);
  return {static_cast<int>(std::ceil(widest)), sizeHint().height()};
}

QRectF ShareBar::part_rect(std::size_t part) const {
  const double total = sum();
  if (!(total > 0)) return {};
  double left = 0;
  for (std::size_t i = 0; i < part; ++i) left += std::max(0.0, parts_[i].value) / total * width();
  return {left, 0, std::max(0.0, parts_[part].value) / total * width(), bar_height};
}

void ShareBar::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  painter.setRenderHint(QPainter::Antialiasing);
  QPainterPath round;
  round.addRoundedRect(QRectF(0, 0, width(), bar_height), 6, 6);
  painter.save();
  painter.setClipPath(round);
  painter.fillRect(QRectF(0, 0, width(), bar_height), theme_.color(Token::SurfaceAlt));
  const double total = sum();
  for (std::size_t i = 0; total > 0 && i < parts_.size(); ++i) {
    const QRectF rect = part_rect(i);
    painter.fillRect(rect, theme_.series(static_cast<int>(i)));
    if (rect.width() > 2)
      painter.fillRect(QRectF(rect.right() - 1, 0, 1, bar_height), theme_.color(Token::Surface));
  }
  painter.restore();
  const QFontMetricsF metrics(font());
  const double share_width = metrics.horizontalAdvance(QStringLiteral("100 %")) + 12;
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    const double top = bar_height + top_gap + static_cast<double>(i) * line_height;
    painter.setPen(Qt::NoPen);
    painter.setBrush(theme_.series(static_cast<int>(i)));
    painter.drawRoundedRect(QRectF(0, top + (line_height - dot) / 2.0, dot, dot), 3, 3);
    painter.setPen(theme_.color(Token::Text));
    painter.drawText(QRectF(dot + 8, top, width() - dot - 8, line_height),
                     static_cast<int>(Qt::AlignVCenter | Qt::AlignLeft), parts_[i].name);
    draw_tabular(painter, QRectF(0, top, width() - share_width, line_height),
                 Qt::AlignRight | Qt::AlignVCenter, parts_[i].text);
    painter.setPen(theme_.color(Token::TextMuted));
    draw_tabular(painter, QRectF(0, top, width(), line_height), Qt::AlignRight | Qt::AlignVCenter,
                 total > 0 ? Format::percent(parts_[i].value / total) : Format::dash());
  }
}

}  // namespace neuroshard::ui
