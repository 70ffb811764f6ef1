// The range of x that a chart shows: all of it, or a part that the user zoomed into. A part stays where it is
// when the whole grows; the whole follows it.
#pragma once

#include <QObject>

#include "ui/widgets/plot_series.h"

namespace neuroshard::ui {

class PlotView final : public QObject {
  Q_OBJECT
 public:
  explicit PlotView(QObject* parent) : QObject(parent) {}

  PlotRange range() const { return range_; }
  bool zoomed() const { return zoomed_; }

  void set_full(PlotRange range);
  // The part with the middle of `range`, within the whole and no shorter than four steps.
  void zoom_to(PlotRange range);
  void zoom_by(double factor, double around);  // `around` keeps its place
  void pan_by(double share);                   // of what is visible; only while zoomed
  void show_all();

 Q_SIGNALS:
  void range_changed(neuroshard::ui::PlotRange range);  // by the user, or because the whole grew
  void zoom_changed(bool zoomed);

 private:
  void set_range(PlotRange range, bool zoomed);

  PlotRange full_, range_;
  bool zoomed_ = false;
};

}  // namespace neuroshard::ui
