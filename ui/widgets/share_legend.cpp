#include "ui/widgets/share_legend.h"

#include <QPainter>
#include <algorithm>
#include <cmath>

#include "ui/text/format.h"
#include "ui/theme/theme.h"
#include "ui/widgets/csv.h"
#include "ui/widgets/tabular_text.h"

namespace neuroshard::ui {
namespace {

constexpr int line_height = 24, dot = 10, gap = 8;

QString share_text(const SharePart& part, double total) {
  return total > 0 ? Format::percent(part.value / total) : Format::dash();
}

// Of the column of shares.
double share_width(const std::vector<SharePart>& parts, const QFontMetricsF& metrics) {
  double widest = 0;
  for (const SharePart& part : parts)
    widest = std::max(widest, tabular_width(share_text(part, sum_of(parts)), metrics));
  return widest + gap;
}

}  // namespace

double sum_of(const std::vector<SharePart>& parts) {
  double total = 0;
  for (const SharePart& part : parts) total += std::max(0.0, part.value);
  return total;
}

QString describe(const std::vector<SharePart>& parts) {
  const double total = sum_of(parts);
  QStringList words;
  for (const SharePart& part : parts)
    words << ShareLegend::tr("%1: %2, %3").arg(part.name, part.text, share_text(part, total));
  return words.join(QStringLiteral("; "));
}

QString csv_of(const std::vector<SharePart>& parts) {
  const double total = sum_of(parts);
  QString text = csv_line({ShareLegend::tr("Part"), ShareLegend::tr("Value"), ShareLegend::tr("Share")});
  for (const SharePart& part : parts)
    text +=
        csv_line({part.name, csv_number(part.value), total > 0 ? csv_number(part.value / total) : QString()});
  return text;
}

ShareLegend::ShareLegend(const Theme& theme, QWidget* parent) : QWidget(parent), theme_(theme) {
  setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Fixed);
  connect(&theme, &Theme::changed, this, qOverload<>(&QWidget::update));
}

void ShareLegend::set_parts(std::vector<SharePart> parts) {
  const QSize before = minimumSizeHint();
  parts_ = std::move(parts);
  if (minimumSizeHint() != before) updateGeometry();
  update();
}

QSize ShareLegend::sizeHint() const {
  return {std::max(280, minimumSizeHint().width()), line_height * static_cast<int>(parts_.size())};
}

QSize ShareLegend::minimumSizeHint() const {
  const QFontMetricsF metrics(font());
  const double shares = share_width(parts_, metrics);
  double widest = 0;
  for (const SharePart& part : parts_)
    widest = std::max(widest, dot + 3 * gap + metrics.horizontalAdvance(part.name) +
                                  tabular_width(part.text, metrics) + shares);
  return {static_cast<int>(std::ceil(widest)), line_height * static_cast<int>(parts_.size())};
}

void ShareLegend::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  painter.setRenderHint(QPainter::Antialiasing);
  const QFontMetricsF metrics(font());
  const double total = sum_of(parts_), shares = share_width(parts_, metrics);
  const bool rtl = layoutDirection() == Qt::RightToLeft;
  const Qt::Alignment far = rtl ? Qt::AlignLeft : Qt::AlignRight;
  // A rectangle that is written for left to right, where it belongs.
  const auto place = [this, rtl](QRectF rect) {
    if (rtl) rect.moveLeft(width() - rect.right());
    return rect;
  };
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    const SharePart& part = parts_[i];
    const double top = static_cast<double>(i) * line_height;
    painter.setPen(Qt::NoPen);
    painter.setBrush(theme_.series(static_cast<int>(i)));
    painter.drawRoundedRect(place({0, top + (line_height - dot) / 2.0, dot, dot}), 3, 3);
    painter.setPen(theme_.color(Token::Text));
    // The painter turns left and right itself where the language does.
    painter.drawText(place(QRectF(dot + gap, top, width() - dot - gap, line_height)),
                     static_cast<int>(Qt::AlignVCenter | Qt::AlignLeft), part.name);
    draw_tabular(painter, place({0, top, width() - shares, line_height}), far | Qt::AlignVCenter, part.text);
    painter.setPen(theme_.color(Token::TextMuted));
    draw_tabular(painter, place({0, top, static_cast<double>(width()), line_height}), far | Qt::AlignVCenter,
                 share_text(part, total));
  }
}

}  // namespace neuroshard::ui
