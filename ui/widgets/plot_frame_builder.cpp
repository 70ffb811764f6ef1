#include "ui/widgets/plot_frame_builder.h"

#include <QDateTime>
#include <QLocale>
#include <algorithm>
#include <cmath>

#include "ui/text/format.h"

namespace neuroshard::ui {
namespace {

constexpr double pixels_per_x_tick = 90, pixels_per_y_tick = 44;

QString number_text(double number) {
  return number < 1e6 ? Format::integer(static_cast<std::uint64_t>(std::max(0.0, number)))
                      : Format::si(number);
}

// "06:10", and with seconds where there are some: "06:10:15".
QString time_text(double seconds) {
  const QTime time = QDateTime::fromSecsSinceEpoch(static_cast<qint64>(seconds)).time();
  QString format = QLocale().timeFormat(QLocale::ShortFormat);
  format.remove(QStringLiteral(":ss"));  // some languages' short format has them
  if (time.second() != 0) format.replace(QStringLiteral("mm"), QStringLiteral("mm:ss"));
  return QLocale().toString(time, format);
}

void add_axes(PlotFrame& frame, const PlotOptions& options) {
  if (!options.axes_shown) {
    frame.axes.area = frame.bounds.adjusted(2, 3, -2, -3);
    return;
  }
  const int y_count = std::max(2, static_cast<int>(frame.bounds.height() / pixels_per_y_tick));
  frame.y_ticks = frame.axes.log_y ? log_ticks(frame.axes.y, y_count, options.y_unit)
                                   : linear_ticks(frame.axes.y, y_count, options.y_unit);
  frame.axes.area = plot_area(frame.bounds, frame.font, frame.y_ticks, frame.format_y, frame.legend);
  const int x_count = std::max(2, static_cast<int>(frame.axes.area.width() / pixels_per_x_tick));
  const PlotUnit unit = options.x == PlotX::Time ? PlotUnit::Time : PlotUnit::Plain;
  for (const double tick : linear_ticks(frame.axes.x, x_count, unit))
    if (tick == std::floor(tick)) frame.x_ticks.push_back(tick);
}

PlotDrawing draw_series(const PlotSeries& one, const std::vector<double>& smoothed, const PlotAxes& axes) {
  const int columns = static_cast<int>(axes.area.width());
  PlotDrawing drawing;
  drawing.name = one.name;
  drawing.colour = one.colour;
  drawing.markers = one.markers && static_cast<int>(one.points.size()) <= columns / 8;
  // The smoothed values go through the same reduction, as the means of points of their own.
  drawing.points = decimate(one.points, axes.x, columns);
  if (one.smoothed && smoothed.size() == one.points.size()) {
    std::vector<PlotPoint> means = one.points;
    for (std::size_t k = 0; k < means.size(); ++k) means[k].mean = smoothed[k];
    for (const PlotPoint& point : decimate(means, axes.x, columns)) {
      drawing.smooth_values.push_back(point.mean);
      drawing.smoothed << QPointF(axes.to_pixel_x(point.x), axes.to_pixel_y(point.mean));
    }
  }
  for (const PlotPoint& point : drawing.points)
    drawing.line << QPointF(axes.to_pixel_x(point.x), axes.to_pixel_y(point.mean));
  const auto spread = [](const PlotPoint& point) { return point.most > point.least; };
  if (one.band && std::any_of(drawing.points.begin(), drawing.points.end(), spread)) {
    for (const PlotPoint& point : drawing.points)
      drawing.band << QPointF(axes.to_pixel_x(point.x), axes.to_pixel_y(point.most));
    for (auto at = drawing.points.rbegin(); at != drawing.points.rend(); ++at)
      drawing.band << QPointF(axes.to_pixel_x(at->x), axes.to_pixel_y(at->least));
  }
  return drawing;
}

}  // namespace

QString plot_x_text(PlotX meaning, double value) {
  return meaning == PlotX::Time ? time_text(value) : number_text(value);
}

PlotFrame build_plot_frame(const PlotContent& content, const PlotOptions& options, PlotRange visible,
                           bool log_y, const QRectF& bounds, const QFont& font) {
  PlotFrame frame;
  frame.bounds = bounds;
  frame.font = font;
  frame.font.setPixelSize(12);
  frame.legend = options.axes_shown;
  frame.format_y = options.format_y;
  frame.format_x = options.x == PlotX::Time ? &time_text : &number_text;
  frame.x_is_step = options.x == PlotX::Step;
  frame.axes.x = visible;
  frame.axes.log_y = log_y;
  std::vector<const std::vector<PlotPoint>*> all;
  for (const PlotSeries& one : content.series) all.push_back(&one.points);
  frame.axes.y = fitting_range(all, visible, log_y);
  add_axes(frame, options);
  if (frame.axes.area.width() < 1 || frame.axes.area.height() < 1) return frame;
  for (std::size_t i = 0; i < content.series.size(); ++i)
    frame.drawings.push_back(draw_series(content.series[i], content.smoothed[i], frame.axes));
  if (options.axes_shown)
    for (const PlotMark& mark : content.marks)
      if (mark.x >= visible.from && mark.x <= visible.to) frame.marks.push_back(mark);
  return frame;
}

}  // namespace neuroshard::ui
