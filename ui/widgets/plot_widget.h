// A streaming chart over training steps: lines with bands, a smoothed line, marks, zoom, pan and a crosshair.
// It takes any number of points and draws no more than its pixels. Its owner brings a finer series when the
// range of its view changes (plot_view.h).
//
// Mouse: drag selects a range (moves it when zoomed in; with Shift always selects), double click shows all,
// the wheel zooms while the chart has the focus or with Ctrl. Keys: arrows move the crosshair, with Shift the
// range; + and - zoom; Home and End; 0 or Escape show all.
#pragma once

#include <QWidget>
#include <optional>

#include "ui/widgets/cached_picture.h"
#include "ui/widgets/plot_frame_builder.h"
#include "ui/widgets/plot_view.h"

namespace neuroshard::ui {

class PlotWidget final : public QWidget {
  Q_OBJECT
 public:
  PlotWidget(const Theme& theme, const QString& title, QWidget* parent = nullptr);

  QString title() const { return title_; }
  void set_options(PlotOptions options);
  const PlotOptions& options() const { return options_; }
  void set_log_y(bool on);
  void set_empty_text(const QString& text);

  // The whole chart again, with one repaint. Points ascending by x.
  void set_series(std::vector<PlotSeries> series);
  const std::vector<PlotSeries>& series() const { return content_.series; }
  void set_marks(std::vector<PlotMark> marks);
  const std::vector<PlotMark>& marks() const { return content_.marks; }
  bool empty() const;

  PlotView* view() const { return view_; }
  std::size_t buckets_wanted() const;  // for a query of the visible range: 2 × pixels at most

  // The frame that is on the screen. frames() counts frames that were built anew.
  const PlotFrame& frame() const { return frame_; }
  int frames() const { return picture_->drawings(); }
  std::optional<PlotReading> reading() const;
  QImage to_image(QSize size, qreal scale) const;

  QSize sizeHint() const override { return {480, 220}; }
  QSize minimumSizeHint() const override { return options_.axes_shown ? QSize(220, 150) : QSize(80, 32); }

 Q_SIGNALS:
  void buckets_changed();
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
  PlotFrame frame_within(const QRectF& bounds) const;
  void invalidate();
  void move_cursor(int points);
  void set_cursor(std::optional<double> x);
  void describe();

  const Theme& theme_;
  QString title_, empty_text_;
  PlotView* view_;
  PlotOptions options_;
  PlotContent content_;
  bool log_y_ = false;
  PlotFrame frame_;
  CachedPicture* picture_ = nullptr;
  std::optional<double> cursor_;
  std::optional<QPointF> pressed_;
  std::optional<double> selecting_from_;
  PlotRange pressed_range_;
};

}  // namespace neuroshard::ui
