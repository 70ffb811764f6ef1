#include "ui/widgets/plot_widget.h"

#include <QAccessible>
#include <QDateTime>
#include <QEvent>
#include <QKeyEvent>
#include <QLocale>
#include <QPainter>
#include <algorithm>
#include <cmath>

#include "ui/text/format.h"
#include "ui/theme/theme.h"

namespace neuroshard::ui {
namespace {

constexpr double pixels_per_x_tick = 90, pixels_per_y_tick = 44;
constexpr double least_visible = 4;  // steps
constexpr double drag_starts = 4;    // pixels

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

}  // namespace

PlotWidget::PlotWidget(const Theme& theme, const QString& title, QWidget* parent)
    : QWidget(parent),
      theme_(theme),
      title_(title),
      format_y_([](double v) { return Format::significant(v, 4); }),
      picture_(new CachedPicture(this, [this](QPainter& painter) {
        frame_ = build_frame(QRectF(rect()).adjusted(2, 2, -2, -2));
        paint_plot(painter, frame_, theme_);
      })) {
  setFocusPolicy(Qt::StrongFocus);
  setMouseTracking(true);
  setAccessibleName(title);
  setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Expanding);
  connect(&theme, &Theme::changed, this, &PlotWidget::invalidate);
  describe();
}

void PlotWidget::invalidate() {
  empty() ? update() : picture_->invalidate();
}

void PlotWidget::set_y_format(const Formatter& format) {
  format_y_ = format;
  invalidate();
}

void PlotWidget::set_y_unit(PlotUnit unit) {
  y_unit_ = unit;
  invalidate();
}

void PlotWidget::set_x(PlotX meaning) {
  x_ = meaning;
  invalidate();
}

void PlotWidget::set_y_title(const QString& title) {
  y_title_ = title;
  invalidate();
}

void PlotWidget::set_series(std::vector<PlotSeries> series) {
  series_ = std::move(series);
  smoothed_.assign(series_.size(), {});
  for (std::size_t i = 0; i < series_.size(); ++i)
    if (series_[i].smoothed) smoothed_[i] = smooth(series_[i].points, span_);
  describe();
  invalidate();
  Q_EMIT data_changed();
}

void PlotWidget::set_marks(std::vector<PlotMark> marks) {
  if (marks == marks_) return;
  marks_ = std::move(marks);
  invalidate();
}

void PlotWidget::set_full_range(PlotRange range) {
  if (!(range.length() > 0)) range.to = range.from + 1;
  if (range == full_) return;
  full_ = range;
  if (!zoomed_) set_visible(full_, false);
}

void PlotWidget::set_log_y(bool on) {
  log_y_ = on;
  invalidate();
}

void PlotWidget::set_smoothing(double span_steps) {
  span_ = span_steps;
  set_series(std::move(series_));
}

void PlotWidget::set_legend(bool on) {
  legend_ = on;
  invalidate();
}

void PlotWidget::set_axes_shown(bool on) {
  axes_shown_ = on;
  setFocusPolicy(on ? Qt::StrongFocus : Qt::NoFocus);
  updateGeometry();
  invalidate();
}

void PlotWidget::set_empty_text(const QString& text) {
  empty_text_ = text;
  update();
}

bool PlotWidget::empty() const {
  return std::all_of(series_.begin(), series_.end(),
                     [](const PlotSeries& one) { return one.points.empty(); });
}

std::size_t PlotWidget::buckets_wanted() const {
  return std::clamp<std::size_t>(2 * static_cast<std::size_t>(std::max(width(), 1)), 1,
                                 node::max_series_buckets);
}

void PlotWidget::set_visible(PlotRange range, bool zoomed) {
  const bool was = zoomed_;
  zoomed_ = zoomed;
  if (range == visible_ && was == zoomed) return;
  visible_ = range;
  invalidate();
  Q_EMIT range_changed(visible_);
  if (was != zoomed_) Q_EMIT zoom_changed(zoomed_);
}

void PlotWidget::zoom_to(PlotRange range) {
  double length = std::max(range.length(), least_visible);
  if (length >= full_.length()) return show_all();
  const double from = std::clamp((range.from + range.to - length) / 2, full_.from, full_.to - length);
  set_visible({from, from + length}, true);
}

void PlotWidget::show_all() {
  set_visible(full_, false);
}

void PlotWidget::zoom_by(double factor, double around) {
  const double length = visible_.length() * factor;
  const double share = (around - visible_.from) / visible_.length();
  zoom_to({around - length * share, around + length * (1 - share)});
}

void PlotWidget::pan_by(double share) {
  if (!zoomed_) return;
  const double by = visible_.length() * share;
  zoom_to({visible_.from + by, visible_.to + by});
}

PlotFrame PlotWidget::build_frame(const QRectF& bounds) const {
  PlotFrame frame;
  frame.bounds = bounds;
  frame.font = font();
  frame.font.setPixelSize(12);
  frame.y_title = axes_shown_ ? y_title_ : QString();
  frame.legend = legend_ && axes_shown_;
  frame.format_y = format_y_;
  frame.format_x = x_ == PlotX::Time ? &time_text : &number_text;
  frame.x_is_step = x_ == PlotX::Step;
  frame.axes.x = visible_;
  frame.axes.log_y = log_y_;
  std::vector<const std::vector<PlotPoint>*> all;
  for (const PlotSeries& one : series_) all.push_back(&one.points);
  frame.axes.y = fitting_range(all, visible_, log_y_);
  if (axes_shown_) {
    const int y_count = std::max(2, static_cast<int>(bounds.height() / pixels_per_y_tick));
    frame.y_ticks =
        log_y_ ? log_ticks(frame.axes.y, y_count, y_unit_) : linear_ticks(frame.axes.y, y_count, y_unit_);
    const bool top_row = frame.legend || !frame.y_title.isEmpty();
    frame.axes.area = plot_area(bounds, frame.font, frame.y_ticks, format_y_, top_row);
    const int x_count = std::max(2, static_cast<int>(frame.axes.area.width() / pixels_per_x_tick));
    for (const double tick :
         linear_ticks(visible_, x_count, x_ == PlotX::Time ? PlotUnit::Time : PlotUnit::Plain))
      if (tick == std::floor(tick)) frame.x_ticks.push_back(tick);
  } else {
    frame.axes.area = bounds.adjusted(2, 3, -2, -3);
  }
  if (frame.axes.area.width() < 1 || frame.axes.area.height() < 1) return frame;
  const int columns = static_cast<int>(frame.axes.area.width());
  for (std::size_t i = 0; i < series_.size(); ++i) {
    const PlotSeries& one = series_[i];
    PlotDrawing drawing;
    drawing.name = one.name;
    drawing.colour = one.colour;
    drawing.markers = one.markers && static_cast<int>(one.points.size()) <= columns / 8;
    // The smoothed values go through the same reduction, as the means of points of their own.
    drawing.points = decimate(one.points, visible_, columns);
    if (one.smoothed && smoothed_[i].size() == one.points.size()) {
      std::vector<PlotPoint> means = one.points;
      for (std::size_t k = 0; k < means.size(); ++k) means[k].mean = smoothed_[i][k];
      for (const PlotPoint& point : decimate(means, visible_, columns)) {
        drawing.smooth_values.push_back(point.mean);
        drawing.smoothed << QPointF(frame.axes.to_pixel_x(point.x), frame.axes.to_pixel_y(point.mean));
      }
    }
    for (const PlotPoint& point : drawing.points)
      drawing.line << QPointF(frame.axes.to_pixel_x(point.x), frame.axes.to_pixel_y(point.mean));
    const auto spread = [](const PlotPoint& point) { return point.most > point.least; };
    if (one.band && std::any_of(drawing.points.begin(), drawing.points.end(), spread)) {
      for (const PlotPoint& point : drawing.points)
        drawing.band << QPointF(frame.axes.to_pixel_x(point.x), frame.axes.to_pixel_y(point.most));
      for (auto at = drawing.points.rbegin(); at != drawing.points.rend(); ++at)
        drawing.band << QPointF(frame.axes.to_pixel_x(at->x), frame.axes.to_pixel_y(at->least));
    }
    frame.drawings.push_back(std::move(drawing));
  }
  if (axes_shown_)
    for (const PlotMark& mark : marks_)
      if (mark.x >= visible_.from && mark.x <= visible_.to) frame.marks.push_back(mark);
  return frame;
}

void PlotWidget::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  if (empty()) {
    painter.setPen(theme_.color(Token::TextMuted));
    painter.drawText(rect().adjusted(12, 8, -12, -8), static_cast<int>(Qt::AlignCenter) | Qt::TextWordWrap,
                     empty_text_);
  } else {
    picture_->paint(painter);
    if (selecting_from_ && cursor_) {
      const double a = frame_.axes.to_pixel_x(*selecting_from_), b = frame_.axes.to_pixel_x(*cursor_);
      QColor shade = theme_.color(Token::Accent);
      shade.setAlpha(50);
      painter.fillRect(
          QRectF(std::min(a, b), frame_.axes.area.top(), std::abs(a - b), frame_.axes.area.height()), shade);
    }
    if (const auto at = reading(); at && axes_shown_) paint_reading(painter, frame_, *at, theme_);
  }
  if (hasFocus()) {
    painter.setRenderHint(QPainter::Antialiasing);
    painter.setPen(QPen(theme_.color(Token::Focus), 1.5));
    painter.drawRoundedRect(QRectF(rect()).adjusted(1, 1, -1, -1), 6, 6);
  }
}

std::optional<PlotReading> PlotWidget::reading() const {
  if (!cursor_ || empty()) return std::nullopt;
  return read_plot(frame_, *cursor_);
}

QImage PlotWidget::to_image(QSize size, qreal scale) const {
  QImage image(size * scale, QImage::Format_ARGB32_Premultiplied);
  image.setDevicePixelRatio(scale);
  image.fill(theme_.color(Token::Surface));
  QPainter painter(&image);
  paint_plot(painter, build_frame(QRectF(QPointF(0, 0), size).adjusted(12, 12, -12, -12)), theme_);
  return image;
}

void PlotWidget::set_cursor(std::optional<double> x) {
  if (x == cursor_) return;
  cursor_ = x;
  update();
}

void PlotWidget::move_cursor(int points) {
  const PlotDrawing* leading = nullptr;
  for (const PlotDrawing& drawing : frame_.drawings)
    if (leading == nullptr || drawing.points.size() > leading->points.size()) leading = &drawing;
  if (leading == nullptr || leading->points.empty()) return;
  const auto last = static_cast<int>(leading->points.size()) - 1;
  const int at = cursor_ ? static_cast<int>(*nearest(leading->points, *cursor_)) + points : last;
  set_cursor(leading->points[static_cast<std::size_t>(std::clamp(at, 0, last))].x);
  describe();
}

// For screen readers: what is under the crosshair, else where the series stand.
void PlotWidget::describe() {
  QString text;
  if (const auto at = reading()) {
    text = at->title;
    for (const QString& line : at->lines) text += QStringLiteral(", ") + line;
  } else if (empty()) {
    text = empty_text_.isEmpty() ? tr("No data yet") : empty_text_;
  } else {
    for (const PlotSeries& one : series_) {
      if (one.points.empty()) continue;
      if (!text.isEmpty()) text += QStringLiteral("; ");
      const QString name = one.name.isEmpty() ? title_ : one.name;
      const PlotPoint& last = one.points.back();
      text += x_ != PlotX::Step
                  ? tr("%1: %2 at %3")
                        .arg(name, format_y_(last.mean),
                             x_ == PlotX::Time ? time_text(last.x) : number_text(last.x))
                  : tr("%1: %2 at step %3")
                        .arg(name, format_y_(last.mean),
                             Format::integer(static_cast<std::uint64_t>(std::max(0.0, last.x))));
    }
  }
  if (text == accessibleDescription()) return;
  setAccessibleDescription(text);
}

void PlotWidget::resizeEvent(QResizeEvent* event) {
  QWidget::resizeEvent(event);
  invalidate();
  Q_EMIT range_changed(visible_);  // other pixels, other buckets
}

void PlotWidget::changeEvent(QEvent* event) {
  if (event->type() == QEvent::FontChange) invalidate();
  QWidget::changeEvent(event);
}

void PlotWidget::mousePressEvent(QMouseEvent* event) {
  if (event->button() != Qt::LeftButton || !axes_shown_ || empty()) return QWidget::mousePressEvent(event);
  pressed_ = event->position();
  pressed_range_ = visible_;
  if (!zoomed_ || event->modifiers().testFlag(Qt::ShiftModifier))
    selecting_from_ = frame_.axes.to_value_x(event->position().x());
}

void PlotWidget::mouseMoveEvent(QMouseEvent* event) {
  if (empty() || !axes_shown_) return;
  const double x = frame_.axes.to_value_x(event->position().x());
  if (pressed_ && !selecting_from_ && std::abs(event->position().x() - pressed_->x()) > drag_starts) {
    const double by =
        (pressed_->x() - event->position().x()) / frame_.axes.area.width() * pressed_range_.length();
    zoom_to({pressed_range_.from + by, pressed_range_.to + by});
  }
  set_cursor(std::clamp(x, visible_.from, visible_.to));
}

void PlotWidget::mouseReleaseEvent(QMouseEvent* event) {
  if (selecting_from_ && pressed_ && std::abs(event->position().x() - pressed_->x()) > drag_starts) {
    const double to = frame_.axes.to_value_x(event->position().x());
    zoom_to({std::min(*selecting_from_, to), std::max(*selecting_from_, to)});
  }
  selecting_from_.reset();
  pressed_.reset();
  update();
}

void PlotWidget::mouseDoubleClickEvent(QMouseEvent*) {
  show_all();
}

void PlotWidget::leaveEvent(QEvent*) {
  if (!hasFocus()) set_cursor(std::nullopt);
}

void PlotWidget::wheelEvent(QWheelEvent* event) {
  const bool ours =
      axes_shown_ && !empty() && (hasFocus() || event->modifiers().testFlag(Qt::ControlModifier));
  if (!ours) return event->ignore();  // the page scrolls
  const QPoint delta = event->angleDelta();
  if (std::abs(delta.x()) > std::abs(delta.y()))
    pan_by(-delta.x() / 1200.0);
  else
    zoom_by(std::pow(0.85, delta.y() / 120.0), frame_.axes.to_value_x(event->position().x()));
  event->accept();
}

void PlotWidget::keyPressEvent(QKeyEvent* event) {
  const bool shift = event->modifiers().testFlag(Qt::ShiftModifier);
  const double middle = cursor_.value_or((visible_.from + visible_.to) / 2);
  switch (event->key()) {
    case Qt::Key_Left: shift ? pan_by(-0.2) : move_cursor(-1); break;
    case Qt::Key_Right: shift ? pan_by(0.2) : move_cursor(1); break;
    case Qt::Key_PageUp: move_cursor(-20); break;
    case Qt::Key_PageDown: move_cursor(20); break;
    case Qt::Key_Home: move_cursor(-1 << 20); break;
    case Qt::Key_End: move_cursor(1 << 20); break;
    case Qt::Key_Plus:
    case Qt::Key_Equal: zoom_by(0.7, middle); break;
    case Qt::Key_Minus: zoom_by(1 / 0.7, middle); break;
    case Qt::Key_0: show_all(); break;
    case Qt::Key_Escape:
      if (!zoomed_ && !cursor_) return QWidget::keyPressEvent(event);
      show_all();
      set_cursor(std::nullopt);
      describe();
      break;
    default: return QWidget::keyPressEvent(event);
  }
  event->accept();
}

void PlotWidget::focusInEvent(QFocusEvent* event) {
  QWidget::focusInEvent(event);
  update();
}

void PlotWidget::focusOutEvent(QFocusEvent* event) {
  QWidget::focusOutEvent(event);
  set_cursor(std::nullopt);
  update();
}

}  // namespace neuroshard::ui
