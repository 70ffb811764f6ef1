#include "ui/widgets/plot_view.h"

#include <algorithm>

namespace neuroshard::ui {
namespace {

constexpr double least_visible = 4;  // steps

}  // namespace

void PlotView::set_full(PlotRange range) {
  if (!(range.length() > 0)) range.to = range.from + 1;
  if (range == full_) return;
  full_ = range;
  if (!zoomed_) set_range(full_, false);
}

void PlotView::set_range(PlotRange range, bool zoomed) {
  const bool was = zoomed_;
  zoomed_ = zoomed;
  if (range == range_ && was == zoomed) return;
  range_ = range;
  Q_EMIT range_changed(range_);
  if (was != zoomed_) Q_EMIT zoom_changed(zoomed_);
}

void PlotView::zoom_to(PlotRange range) {
  const double length = std::max(range.length(), least_visible);
  if (length >= full_.length()) return show_all();
  const double from = std::clamp((range.from + range.to - length) / 2, full_.from, full_.to - length);
  set_range({from, from + length}, true);
}

void PlotView::show_all() {
  set_range(full_, false);
}

void PlotView::zoom_by(double factor, double around) {
  const double length = range_.length() * factor;
  const double share = (around - range_.from) / range_.length();
  zoom_to({around - length * share, around + length * (1 - share)});
}

void PlotView::pan_by(double share) {
  if (!zoomed_) return;
  const double by = range_.length() * share;
  zoom_to({range_.from + by, range_.to + by});
}

}  // namespace neuroshard::ui
