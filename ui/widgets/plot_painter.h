// Draws one frame of a chart from data that is already reduced to its pixels.
#pragma once

#include <QFont>
#include <QPolygonF>
#include <QString>
#include <functional>
#include <optional>
#include <vector>

#include "ui/widgets/plot_axes.h"

class QPainter;

namespace neuroshard::ui {

class Theme;

// Sync: an outer round was taken. Join: nodes came to the network.
enum class PlotMarkKind { Checkpoint, Restore, Evaluation, Sync, Join };
struct PlotMark {
  double x = 0;
  PlotMarkKind kind = PlotMarkKind::Checkpoint;
  QString text;
  bool operator==(const PlotMark&) const = default;
};

// One series on the screen, in pixels. Each line has at most 2 × the pixels of the area's width + 4
// points.
struct PlotDrawing {
  QString name;
  int colour = 0;
  QPolygonF line;      // through the means
  QPolygonF smoothed;  // empty when the series is not smoothed
  QPolygonF band;      // along the most, back along the least; empty without a band
  bool markers = false;
  std::vector<PlotPoint> points;      // behind `line`, for the crosshair
  std::vector<double> smooth_values;  // behind `smoothed`
};

struct PlotFrame {
  PlotAxes axes;
  QRectF bounds;
  QFont font;
  std::vector<PlotDrawing> drawings;
  std::vector<PlotMark> marks;  // within the range
  std::vector<double> x_ticks, y_ticks;
  std::function<QString(double)> format_x, format_y;
  bool x_is_step = true;
  bool legend = true;
};

// Room for the labels; computed before the axes have their area.
QRectF plot_area(const QRectF& bounds, const QFont& font, const std::vector<double>& y_ticks,
                 const std::function<QString(double)>& format_y, bool legend);

void paint_plot(QPainter& painter, const PlotFrame& frame, const Theme& theme);

// The crosshair at a value of x: a vertical line, a dot on each series, and a box with their values.
struct PlotReading {
  double x = 0;
  QString title;               // "Step 1,204"
  std::vector<QString> lines;  // "Loss 3.214"
  std::vector<int> colours;    // of each line; -1 = none
  std::vector<QPointF> dots;
};
std::optional<PlotReading> read_plot(const PlotFrame& frame, double x);
void paint_reading(QPainter& painter, const PlotFrame& frame, const PlotReading& reading, const Theme& theme);

}  // namespace neuroshard::ui
