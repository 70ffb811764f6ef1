// A streaming chart over training steps: lines with bands, a smoothed line, marks, zoom, pan and a crosshair.
// It takes any number of points and draws no more than its pixels; it asks its owner for a finer series when
// the range changes.
//
// Mouse: drag selects a range (moves it when zoomed in; with Shift always selects), double click shows all,
// the wheel zooms while the chart has the focus or with Ctrl. Keys: arrows move the crosshair, with Shift the
// range; + and - zoom; Home and End; 0 or Escape show all.
#pragma once

#include <QWidget>
#include <functional>
#include <optional>

#include "ui/widgets/cached_picture.h"
#include "ui/widgets/plot_painter.h"

namespace neuroshard::ui {

// What is told from left to right.
enum class PlotX {
  Step,   // of training
  Count,  // of something else; the text around the chart says what
  Time,   // seconds since the epoch
};

class PlotWidget final : public QWidget {
  Q_OBJECT
 public:
  using Formatter = std::function<QString(double)>;

  PlotWidget(const Theme& theme, const QString& title, QWidget* parent = nullptr);

  QString title() const { return title_; }
  void set_y_format(const Formatter& format);
  void set_y_unit(PlotUnit unit);
  void set_x(PlotX meaning);
  void set_y_title(const QString& title);
  // The whole chart again, with one repaint. Points ascending by x.
  void set_series(std::vector<PlotSeries> series);
  const std::vector<PlotSeries>& series() const { return series_; }
  void set_marks(std::vector<PlotMark> marks);
  const std::vector<PlotMark>& marks() const { return marks_; }
  // All that there is; what is shown follows it unless zoomed in.
  void set_full_range(PlotRange range);
  void set_log_y(bool on);
  bool log_y() const { return log_y_; }
  void set_smoothing(double span_steps);  // of series that are smoothed
  void set_legend(bool on);
  void set_axes_shown(bool on);  // off: a spark line
  void set_empty_text(const QString& text);

  PlotRange visible_range() const { return visible_; }
  bool zoomed() const { return zoomed_; }
  void zoom_to(PlotRange range);
  void show_all();
  std::size_t buckets_wanted() const;  // for a query of the visible range: 2 × pixels at most
  bool empty() const;

  // What the last frame put on the screen. frames() counts frames that were built anew.
  const PlotFrame& frame() const { return frame_; }
  int frames() const { return picture_->drawings(); }
  std::optional<PlotReading> reading() const;
  QImage to_image(QSize size, qreal scale) const;

  QSize sizeHint() const override { return {480, 220}; }
  QSize minimumSizeHint() const override { return axes_shown_ ? QSize(220, 150) : QSize(80, 32); }

 Q_SIGNALS:
  void range_changed(neuroshard::ui::PlotRange visible);  // by the user, or because all of it grew
  void zoom_changed(bool zoomed);
  void data_changed();

 protected:
  void paintEvent(QPaintEvent* event) override;
  void resizeEvent(QResizeEvent* event) override;
  void changeEvent(QEvent* event) override;
  void mousePressEvent(QMouseEvent* event) override;
  void mouseMoveEvent(QMouseEvent* event) override;
  void mouseReleaseEvent(QMouseEvent* event) override;
  void mouseDoubleClickEvent(QMouseEvent* event) override;
  void leaveEvent(QEvent* event) override;
  void wheelEvent(QWheelEvent* event) override;
  void keyPressEvent(QKeyEvent* event) override;
  void focusInEvent(QFocusEvent* event) override;
  void focusOutEvent(QFocusEvent* event) override;

 private:
  PlotFrame build_frame(const QRectF& bounds) const;
  void invalidate();
  void set_visible(PlotRange range, bool zoomed);
  void zoom_by(double factor, double around);
  void pan_by(double share);
  void move_cursor(int points);
  void set_cursor(std::optional<double> x);
  void describe();

  const Theme& theme_;
  QString title_, y_title_, empty_text_;
  Formatter format_y_;
  PlotUnit y_unit_ = PlotUnit::Plain;
  PlotX x_ = PlotX::Step;
  std::vector<PlotSeries> series_;
  std::vector<std::vector<double>> smoothed_;  // of each series; empty when not smoothed
  std::vector<PlotMark> marks_;
  PlotRange full_, visible_;
  double span_ = 20;
  bool log_y_ = false, zoomed_ = false, legend_ = true, axes_shown_ = true;
  PlotFrame frame_;
  CachedPicture* picture_;
  std::optional<double> cursor_;
  std::optional<QPointF> pressed_;
  std::optional<double> selecting_from_;
  PlotRange pressed_range_;
};

}  // namespace neuroshard::ui
