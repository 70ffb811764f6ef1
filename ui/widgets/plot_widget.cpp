#include "ui/widgets/plot_widget.h"

#include <QAccessible>
#include <QEvent>
#include <QKeyEvent>
#include <QPainter>
#include <algorithm>
#include <cmath>

#include "ui/text/format.h"
#include "ui/theme/theme.h"

namespace neuroshard::ui {
namespace {

constexpr double drag_starts = 4;  // pixels
constexpr double smoothing = 20;   // steps

}  // namespace

PlotWidget::PlotWidget(const Theme& theme, const QString& title, QWidget* parent)
    : QWidget(parent), theme_(theme), title_(title), view_(new PlotView(this)) {
  picture_ = new CachedPicture(this, [this](QPainter& painter) {
    frame_ = frame_within(QRectF(rect()).adjusted(2, 2, -2, -2));
    paint_plot(painter, frame_, theme_);
  });
  setMouseTracking(true);
  setAccessibleName(title);
  setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Expanding);
  set_options({});
  connect(&theme, &Theme::changed, this, &PlotWidget::invalidate);
  connect(view_, &PlotView::range_changed, this, &PlotWidget::invalidate);
  describe();
}

void PlotWidget::invalidate() {
  empty() ? update() : picture_->invalidate();
}

void PlotWidget::set_options(PlotOptions options) {
  options_ = std::move(options);
  if (!options_.format_y) options_.format_y = [](double value) { return Format::significant(value, 4); };
  setFocusPolicy(options_.axes_shown ? Qt::StrongFocus : Qt::NoFocus);
  updateGeometry();
  invalidate();
}

void PlotWidget::set_series(std::vector<PlotSeries> series) {
  content_.smoothed.assign(series.size(), {});
  for (std::size_t i = 0; i < series.size(); ++i)
    if (series[i].smoothed) content_.smoothed[i] = smooth(series[i].points, smoothing);
  content_.series = std::move(series);
  describe();
  invalidate();
  Q_EMIT data_changed();
}

void PlotWidget::set_marks(std::vector<PlotMark> marks) {
  if (marks == content_.marks) return;
  content_.marks = std::move(marks);
  invalidate();
}

void PlotWidget::set_log_y(bool on) {
  log_y_ = on;
  invalidate();
}

void PlotWidget::set_empty_text(const QString& text) {
  empty_text_ = text;
  update();
}

bool PlotWidget::empty() const {
  return std::all_of(content_.series.begin(), content_.series.end(),
                     [](const PlotSeries& one) { return one.points.empty(); });
}

std::size_t PlotWidget::buckets_wanted() const {
  return std::clamp<std::size_t>(2 * static_cast<std::size_t>(std::max(width(), 1)), 1,
                                 node::max_series_buckets);
}

PlotFrame PlotWidget::frame_within(const QRectF& bounds) const {
  return build_plot_frame(content_, options_, view_->range(), log_y_, bounds, font());
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
    if (const auto at = reading(); at && options_.axes_shown) paint_reading(painter, frame_, *at, theme_);
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
  paint_plot(painter, frame_within(QRectF(QPointF(0, 0), size).adjusted(12, 12, -12, -12)), theme_);
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
    for (const PlotSeries& one : content_.series) {
      if (one.points.empty()) continue;
      if (!text.isEmpty()) text += QStringLiteral("; ");
      const QString name = one.name.isEmpty() ? title_ : one.name;
      const PlotPoint& last = one.points.back();
      text +=
          options_.x != PlotX::Step
              ? tr("%1: %2 at %3").arg(name, options_.format_y(last.mean), plot_x_text(options_.x, last.x))
              : tr("%1: %2 at step %3")
                    .arg(name, options_.format_y(last.mean),
                         Format::integer(static_cast<std::uint64_t>(std::max(0.0, last.x))));
    }
  }
  if (text == accessibleDescription()) return;
  setAccessibleDescription(text);
}

void PlotWidget::resizeEvent(QResizeEvent* event) {
  QWidget::resizeEvent(event);
  invalidate();
  Q_EMIT buckets_changed();
}

void PlotWidget::changeEvent(QEvent* event) {
  if (event->type() == QEvent::FontChange) invalidate();
  QWidget::changeEvent(event);
}

void PlotWidget::mousePressEvent(QMouseEvent* event) {
  if (event->button() != Qt::LeftButton || !options_.axes_shown || empty())
    return QWidget::mousePressEvent(event);
  pressed_ = event->position();
  pressed_range_ = view_->range();
  if (!view_->zoomed() || event->modifiers().testFlag(Qt::ShiftModifier))
    selecting_from_ = frame_.axes.to_value_x(event->position().x());
}

void PlotWidget::mouseMoveEvent(QMouseEvent* event) {
  if (empty() || !options_.axes_shown) return;
  const double x = frame_.axes.to_value_x(event->position().x());
  if (pressed_ && !selecting_from_ && std::abs(event->position().x() - pressed_->x()) > drag_starts) {
    const double by =
        (pressed_->x() - event->position().x()) / frame_.axes.area.width() * pressed_range_.length();
    view_->zoom_to({pressed_range_.from + by, pressed_range_.to + by});
  }
  set_cursor(std::clamp(x, view_->range().from, view_->range().to));
}

void PlotWidget::mouseReleaseEvent(QMouseEvent* event) {
  if (selecting_from_ && pressed_ && std::abs(event->position().x() - pressed_->x()) > drag_starts) {
    const double to = frame_.axes.to_value_x(event->position().x());
    view_->zoom_to({std::min(*selecting_from_, to), std::max(*selecting_from_, to)});
  }
  selecting_from_.reset();
  pressed_.reset();
  update();
}

void PlotWidget::mouseDoubleClickEvent(QMouseEvent*) {
  view_->show_all();
}

void PlotWidget::leaveEvent(QEvent*) {
  if (!hasFocus()) set_cursor(std::nullopt);
}

void PlotWidget::wheelEvent(QWheelEvent* event) {
  const bool ours =
      options_.axes_shown && !empty() && (hasFocus() || event->modifiers().testFlag(Qt::ControlModifier));
  if (!ours) return event->ignore();  // the page scrolls
  const QPoint delta = event->angleDelta();
  if (std::abs(delta.x()) > std::abs(delta.y()))
    view_->pan_by(-delta.x() / 1200.0);
  else
    view_->zoom_by(std::pow(0.85, delta.y() / 120.0), frame_.axes.to_value_x(event->position().x()));
  event->accept();
}

void PlotWidget::keyPressEvent(QKeyEvent* event) {
  const bool shift = event->modifiers().testFlag(Qt::ShiftModifier);
  const double middle = cursor_.value_or((view_->range().from + view_->range().to) / 2);
  switch (event->key()) {
    case Qt::Key_Left: shift ? view_->pan_by(-0.2) : move_cursor(-1); break;
    case Qt::Key_Right: shift ? view_->pan_by(0.2) : move_cursor(1); break;
    case Qt::Key_PageUp: move_cursor(-20); break;
    case Qt::Key_PageDown: move_cursor(20); break;
    case Qt::Key_Home: move_cursor(-1 << 20); break;
    case Qt::Key_End: move_cursor(1 << 20); break;
    case Qt::Key_Plus:
    case Qt::Key_Equal: view_->zoom_by(0.7, middle); break;
    case Qt::Key_Minus: view_->zoom_by(1 / 0.7, middle); break;
    case Qt::Key_0: view_->show_all(); break;
    case Qt::Key_Escape:
      if (!view_->zoomed() && !cursor_) return QWidget::keyPressEvent(event);
      view_->show_all();
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
