#include "ui/widgets/plot_painter.h"

#include <QCoreApplication>
#include <QPainter>
#include <QPainterPath>
#include <algorithm>
#include <array>
#include <cmath>

#include "ui/text/format.h"
#include "ui/theme/theme.h"
#include "ui/widgets/tabular_text.h"

namespace neuroshard::ui {
namespace {

constexpr double tick_gap = 6, legend_gap = 18, swatch = 14, mark_side = 9;
constexpr std::size_t mark_kinds = 5;
constexpr double mark_near = 6;  // pixels from the crosshair

QColor with_alpha(QColor colour, int alpha) {
  colour.setAlpha(alpha);
  return colour;
}

void paint_grid(QPainter& painter, const PlotFrame& frame, const Theme& theme) {
  const PlotAxes& axes = frame.axes;
  const QFontMetricsF metrics(frame.font);
  painter.setFont(frame.font);
  for (const double tick : frame.y_ticks) {
    const double y = std::round(axes.to_pixel_y(tick)) + 0.5;
    if (y < axes.area.top() - 1 || y > axes.area.bottom() + 1) continue;
    painter.setPen(QPen(theme.color(Token::Grid), 1));
    painter.drawLine(QPointF(axes.area.left(), y), QPointF(axes.area.right(), y));
    painter.setPen(theme.color(Token::TextMuted));
    const QRectF box(frame.bounds.left(), y - metrics.height() / 2,
                     axes.area.left() - tick_gap - frame.bounds.left(), metrics.height());
    draw_tabular(painter, box, Qt::AlignRight | Qt::AlignVCenter, frame.format_y(tick));
  }
  double free_from = frame.bounds.left();
  for (const double tick : frame.x_ticks) {
    const double x = axes.to_pixel_x(tick);
    if (x < axes.area.left() - 1 || x > axes.area.right() + 1) continue;
    const QString text = frame.format_x(tick);
    const double width = tabular_width(text, metrics);
    double left = std::clamp(x - width / 2, frame.bounds.left(), frame.bounds.right() - width);
    if (left < free_from) continue;
    free_from = left + width + 2 * tick_gap;
    painter.setPen(theme.color(Token::TextMuted));
    draw_tabular(painter, QRectF(left, axes.area.bottom() + tick_gap - 1, width, metrics.height()),
                 Qt::AlignLeft, text);
  }
  painter.setPen(QPen(theme.color(Token::Border), 1));
  painter.drawLine(QPointF(axes.area.left(), axes.area.bottom() + 0.5),
                   QPointF(axes.area.right(), axes.area.bottom() + 0.5));
}

// A different shape for each kind, above the data.
void paint_mark(QPainter& painter, const PlotFrame& frame, const PlotMark& mark, const Theme& theme) {
  const double x = std::round(frame.axes.to_pixel_x(mark.x)) + 0.5;
  const double top = frame.axes.area.top();
  const QColor colour = theme.color(mark.kind == PlotMarkKind::Restore ? Token::Warning : Token::TextMuted);
  painter.setPen(QPen(with_alpha(colour, mark.kind == PlotMarkKind::Restore ? 160 : 70), 1,
                      mark.kind == PlotMarkKind::Restore ? Qt::SolidLine : Qt::DotLine));
  // Upright lines need no smooth edges, and dots with them are slow.
  painter.setRenderHint(QPainter::Antialiasing, false);
  painter.drawLine(QPointF(x, top), QPointF(x, frame.axes.area.bottom()));
  painter.setRenderHint(QPainter::Antialiasing);
  painter.setPen(Qt::NoPen);
  painter.setBrush(colour);
  QRectF box(x - mark_side / 2, top - mark_side / 2, mark_side, mark_side);
  // Often at the step of a checkpoint, or of a round: below its mark.
  const bool below = mark.kind == PlotMarkKind::Restore || mark.kind == PlotMarkKind::Join;
  if (below) box.translate(0, mark_side + 2);
  switch (mark.kind) {
    case PlotMarkKind::Checkpoint: painter.drawRect(box.adjusted(1, 1, -1, -1)); break;
    case PlotMarkKind::Restore: {
      QPolygonF arrow;
      arrow << QPointF(box.left() - 1, box.center().y()) << QPointF(box.right(), box.top())
            << QPointF(box.right(), box.bottom());
      painter.drawPolygon(arrow);
      break;
    }
    case PlotMarkKind::Evaluation: painter.drawEllipse(box.adjusted(1, 1, -1, -1)); break;
    case PlotMarkKind::Sync:
      painter.drawPolygon(QPolygonF()
                          << box.topLeft() << box.topRight() << QPointF(box.center().x(), box.bottom()));
      break;
    case PlotMarkKind::Join: {
      const double arm = mark_side / 3;
      painter.drawRect(QRectF(box.left(), box.center().y() - arm / 2, mark_side, arm));
      painter.drawRect(QRectF(box.center().x() - arm / 2, box.top(), arm, mark_side));
      break;
    }
  }
  painter.setBrush(Qt::NoBrush);
}

void paint_series(QPainter& painter, const PlotDrawing& drawing, const Theme& theme) {
  const QColor colour = theme.series(drawing.colour);
  if (drawing.band.size() > 2) {
    painter.setPen(Qt::NoPen);
    painter.setBrush(with_alpha(colour, theme.dark() ? 56 : 40));
    painter.drawPolygon(drawing.band);
    painter.setBrush(Qt::NoBrush);
  }
  const bool smooth = !drawing.smoothed.isEmpty();
  painter.setPen(QPen(smooth ? with_alpha(colour, theme.dark() ? 130 : 110) : colour, smooth ? 1.0 : 1.75,
                      Qt::SolidLine, Qt::RoundCap, Qt::BevelJoin));
  painter.drawPolyline(drawing.line);
  if (drawing.markers || drawing.line.size() == 1) {
    painter.setPen(Qt::NoPen);
    painter.setBrush(colour);
    for (const QPointF& point : drawing.line) painter.drawEllipse(point, 3, 3);
    painter.setBrush(Qt::NoBrush);
  }
  if (smooth) {
    painter.setPen(QPen(colour, 2.25, Qt::SolidLine, Qt::RoundCap, Qt::BevelJoin));
    painter.drawPolyline(drawing.smoothed);
  }
}

void paint_legend(QPainter& painter, const PlotFrame& frame, const Theme& theme) {
  const QFontMetricsF metrics(frame.font);
  double x = frame.bounds.left();
  const double middle = frame.bounds.top() + metrics.height() / 2;
  if (!frame.legend) return;
  for (const PlotDrawing& drawing : frame.drawings) {
    if (drawing.name.isEmpty()) continue;
    painter.setPen(QPen(theme.series(drawing.colour), 3, Qt::SolidLine, Qt::RoundCap));
    painter.drawLine(QPointF(x, middle), QPointF(x + swatch, middle));
    if (drawing.markers) {
      painter.setBrush(theme.series(drawing.colour));
      painter.drawEllipse(QPointF(x + swatch / 2, middle), 2.5, 2.5);
      painter.setBrush(Qt::NoBrush);
    }
    x += swatch + 6;
    painter.setPen(theme.color(Token::TextMuted));
    painter.drawText(QPointF(x, frame.bounds.top() + metrics.ascent()), drawing.name);
    x += metrics.horizontalAdvance(drawing.name) + legend_gap;
  }
}

}  // namespace

QRectF plot_area(const QRectF& bounds, const QFont& font, const std::vector<double>& y_ticks,
                 const std::function<QString(double)>& format_y, bool legend) {
  const QFontMetricsF metrics(font);
  double widest = 0;
  for (const double tick : y_ticks) widest = std::max(widest, tabular_width(format_y(tick), metrics));
  return bounds.adjusted(widest + tick_gap + 2, legend ? metrics.height() + 10 : 8, -8,
                         -(metrics.height() + tick_gap));
}

void paint_plot(QPainter& painter, const PlotFrame& frame, const Theme& theme) {
  painter.save();
  paint_grid(painter, frame, theme);
  painter.setRenderHint(QPainter::Antialiasing);
  // Of marks of one kind that would cover each other, the first.
  std::array<double, mark_kinds> last;
  last.fill(-1e9);
  for (const PlotMark& mark : frame.marks) {
    const double x = frame.axes.to_pixel_x(mark.x);
    double& before = last[static_cast<std::size_t>(mark.kind)];
    if (std::abs(x - before) < mark_side / 2) continue;
    before = x;
    paint_mark(painter, frame, mark, theme);
  }
  painter.save();
  painter.setClipRect(frame.axes.area.adjusted(-1, -4, 4, 2));
  for (const PlotDrawing& drawing : frame.drawings) paint_series(painter, drawing, theme);
  painter.restore();
  painter.setFont(frame.font);
  paint_legend(painter, frame, theme);
  painter.restore();
}

std::optional<PlotReading> read_plot(const PlotFrame& frame, double x) {
  const PlotDrawing* leading = nullptr;
  for (const PlotDrawing& drawing : frame.drawings) {
    if (drawing.points.empty()) continue;
    if (leading == nullptr || drawing.points.size() > leading->points.size()) leading = &drawing;
  }
  if (leading == nullptr) return std::nullopt;
  PlotReading reading;
  reading.x = leading->points[*nearest(leading->points, x)].x;
  reading.title =
      !frame.x_is_step
          ? frame.format_x(reading.x)
          : QCoreApplication::translate("neuroshard::ui::PlotWidget", "Step %1")
                .arg(Format::integer(static_cast<std::uint64_t>(std::llround(std::max(0.0, reading.x)))));
  for (const PlotDrawing& drawing : frame.drawings) {
    const auto index = nearest(drawing.points, reading.x);
    if (!index) continue;
    const PlotPoint& point = drawing.points[*index];
    const double pixels = std::abs(frame.axes.to_pixel_x(point.x) - frame.axes.to_pixel_x(reading.x));
    if (&drawing != leading && pixels > mark_near) continue;
    const bool smooth = *index < drawing.smooth_values.size();
    const double value = smooth ? drawing.smooth_values[*index] : point.mean;
    QString line =
        (drawing.name.isEmpty() ? QString() : drawing.name + QLatin1Char(' ')) + frame.format_y(value);
    if (point.most > point.least)
      line += QStringLiteral(" (%1–%2)").arg(frame.format_y(point.least), frame.format_y(point.most));
    else if (smooth)
      line += QStringLiteral(" (%1)").arg(frame.format_y(point.mean));
    reading.lines.push_back(line);
    reading.colours.push_back(drawing.colour);
    reading.dots.emplace_back(frame.axes.to_pixel_x(point.x), frame.axes.to_pixel_y(value));
  }
  for (const PlotMark& mark : frame.marks) {
    if (std::abs(frame.axes.to_pixel_x(mark.x) - frame.axes.to_pixel_x(reading.x)) > mark_near) continue;
    reading.lines.push_back(mark.text);
    reading.colours.push_back(-1);
    if (reading.lines.size() > 8) break;
  }
  return reading;
}

void paint_reading(QPainter& painter, const PlotFrame& frame, const PlotReading& reading,
                   const Theme& theme) {
  painter.save();
  painter.setRenderHint(QPainter::Antialiasing);
  const double x = std::round(frame.axes.to_pixel_x(reading.x)) + 0.5;
  painter.setPen(QPen(theme.color(Token::BorderStrong), 1));
  painter.drawLine(QPointF(x, frame.axes.area.top()), QPointF(x, frame.axes.area.bottom()));
  std::size_t dot = 0;
  for (const int colour : reading.colours) {
    if (colour < 0 || dot >= reading.dots.size()) continue;
    painter.setPen(QPen(theme.color(Token::Surface), 2));
    painter.setBrush(theme.series(colour));
    painter.drawEllipse(reading.dots[dot++], 4.5, 4.5);
  }
  painter.setFont(frame.font);
  const QFontMetricsF metrics(frame.font);
  double width = metrics.horizontalAdvance(reading.title);
  for (const QString& line : reading.lines) width = std::max(width, swatch + tabular_width(line, metrics));
  const double pad = 8, height = metrics.height() * (1 + static_cast<double>(reading.lines.size())) + 2 * pad;
  QRectF box(x + 12, frame.axes.area.top() + 4, width + 2 * pad, height);
  if (box.right() > frame.axes.area.right()) box.moveRight(x - 12);
  if (box.left() < frame.bounds.left()) box.moveLeft(frame.bounds.left());
  painter.setPen(QPen(theme.color(Token::Border), 1));
  painter.setBrush(theme.color(Token::Surface));
  painter.drawRoundedRect(box, 8, 8);
  double y = box.top() + pad;
  painter.setPen(theme.color(Token::TextMuted));
  draw_tabular(painter, QRectF(box.left() + pad, y, width, metrics.height()), Qt::AlignLeft, reading.title);
  for (std::size_t i = 0; i < reading.lines.size(); ++i) {
    y += metrics.height();
    if (reading.colours[i] >= 0) {
      painter.setPen(Qt::NoPen);
      painter.setBrush(theme.series(reading.colours[i]));
      painter.drawEllipse(QPointF(box.left() + pad + 4, y + metrics.height() / 2), 4, 4);
    }
    painter.setPen(theme.color(Token::Text));
    draw_tabular(painter, QRectF(box.left() + pad + swatch, y, width, metrics.height()), Qt::AlignLeft,
                 reading.lines[i]);
  }
  painter.restore();
}

}  // namespace neuroshard::ui
