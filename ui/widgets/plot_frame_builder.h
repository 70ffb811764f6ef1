// Turns the series of a chart into a frame: reduced to the pixels that it has, with ticks and marks.
#pragma once

#include <functional>

#include "ui/widgets/plot_painter.h"

namespace neuroshard::ui {

// The meaning of x.
enum class PlotX {
  Step,   // of training
  Round,  // of the network
  Time,   // seconds since the epoch
};

struct PlotOptions {
  std::function<QString(double)> format_y{};  // none: four significant digits
  PlotUnit y_unit = PlotUnit::Plain;
  PlotX x = PlotX::Step;
  bool axes_shown = true;  // off: a spark line
};

struct PlotContent {
  std::vector<PlotSeries> series;
  std::vector<std::vector<double>> smoothed;  // of each series; empty when it is not smoothed
  std::vector<PlotMark> marks;
};

PlotFrame build_plot_frame(const PlotContent& content, const PlotOptions& options, PlotRange visible,
                           bool log_y, const QRectF& bounds, const QFont& font);

QString plot_x_text(PlotX meaning, double value);  // "1,204", "06:10"

}  // namespace neuroshard::ui
