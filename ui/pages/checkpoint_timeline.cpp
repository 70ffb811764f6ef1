#include "ui/pages/checkpoint_timeline.h"

#include <QHelpEvent>
#include <QKeyEvent>
#include <QPainter>
#include <QPainterPath>
#include <QToolTip>
#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "ui/text/format.h"
#include "ui/theme/theme.h"

namespace neuroshard::ui {
namespace {

constexpr int side = 28, top = 30, lane_height = 34, axis_height = 26, max_lanes = 6;
constexpr double radius = 6, reach = 12;

// Whole steps of 1, 2 or 5 times a power of ten, about `count` of them.
std::uint64_t tick_step(std::uint64_t range, int count) {
  const double rough = std::max(1.0, static_cast<double>(range) / count);
  const double power = std::pow(10.0, std::floor(std::log10(rough)));
  for (const double factor : {1.0, 2.0, 5.0})
    if (rough <= factor * power) return static_cast<std::uint64_t>(factor * power);
  return static_cast<std::uint64_t>(10 * power);
}

// Whether the two look alike here.
bool same_mark(const node::CheckpointEntry& a, const node::CheckpointEntry& b) {
  return a.name == b.name && a.step == b.step && a.parent == b.parent && a.pinned == b.pinned &&
         a.complete == b.complete && a.intact == b.intact;
}

}  // namespace

CheckpointTimeline::CheckpointTimeline(const Theme& theme, QWidget* parent)
    : QWidget(parent),
      theme_(theme),
      picture_(new CachedPicture(this, [this](QPainter& painter) { paint_all(painter); })) {
  setFocusPolicy(Qt::StrongFocus);
  setAccessibleName(tr("Timeline of checkpoints"));
  setAccessibleDescription(tr("Arrow keys move between checkpoints. The table below shows the same data."));
  QSizePolicy policy(QSizePolicy::Expanding, QSizePolicy::Fixed);
  setSizePolicy(policy);
  connect(&theme_, &Theme::changed, picture_, &CachedPicture::invalidate);
}

void CheckpointTimeline::set_entries(const std::vector<node::CheckpointEntry>& newest_first) {
  const std::string current =
      current_ >= 0 ? entries_[static_cast<std::size_t>(current_)].name : std::string();
  QStringList names;
  for (std::size_t i = 0; i < entries_.size(); ++i)
    if (selected_[i]) names.append(QString::fromStdString(entries_[i].name));
  // Most answers say what is known already.
  const bool changed =
      !std::equal(entries_.begin(), entries_.end(), newest_first.begin(), newest_first.end(), same_mark);
  entries_ = newest_first;
  if (!changed) return;
  places_ = place_on_branches(entries_);
  by_step_.resize(entries_.size());
  std::iota(by_step_.begin(), by_step_.end(), 0);
  std::sort(by_step_.begin(), by_step_.end(), [this](int a, int b) {
    const auto& x = entries_[static_cast<std::size_t>(a)];
    const auto& y = entries_[static_cast<std::size_t>(b)];
    return x.step != y.step ? x.step < y.step : a > b;
  });
  lanes_ = 1;
  for (const CheckpointPlace& place : places_) lanes_ = std::max(lanes_, place.lane + 1);
  current_ = -1;
  for (std::size_t i = 0; i < entries_.size(); ++i)
    if (entries_[i].name == current) current_ = static_cast<int>(i);
  set_selected(names);
  picture_->invalidate();
  updateGeometry();
}

void CheckpointTimeline::set_selected(const QStringList& names) {
  std::vector<bool> selected(entries_.size(), false);
  for (std::size_t i = 0; i < entries_.size() && !names.isEmpty(); ++i)
    selected[i] = names.contains(QString::fromStdString(entries_[i].name));
  if (std::exchange(selected_, selected) != selected) picture_->invalidate();
}

QSize CheckpointTimeline::sizeHint() const {
  return {600, top + std::min(lanes_, max_lanes) * lane_height + axis_height};
}

double CheckpointTimeline::across(double share) const {
  const double from_start = side + share * (width() - 2 * side);
  return layoutDirection() == Qt::RightToLeft ? width() - from_start : from_start;
}

QPointF CheckpointTimeline::position(int index) const {
  const auto i = static_cast<std::size_t>(index);
  const double first = static_cast<double>(entries_[static_cast<std::size_t>(by_step_.front())].step);
  const double last = static_cast<double>(entries_[static_cast<std::size_t>(by_step_.back())].step);
  const double share = last > first ? (static_cast<double>(entries_[i].step) - first) / (last - first) : 0.5;
  // More branches than there is room for stand closer together.
  const double height =
      lanes_ <= max_lanes ? lane_height : static_cast<double>(max_lanes * lane_height) / lanes_;
  return {across(share), top + (places_[i].lane + 0.5) * height};
}

QPointF CheckpointTimeline::position_of(const QString& name) const {
  for (std::size_t i = 0; i < entries_.size(); ++i)
    if (QString::fromStdString(entries_[i].name) == name) return position(static_cast<int>(i));
  return {};
}

int CheckpointTimeline::index_at(const QPointF& point) const {
  int best = -1;
  double nearest = reach * reach;
  for (int i = 0; i < static_cast<int>(entries_.size()); ++i) {
    const QPointF d = position(i) - point;
    const double distance = d.x() * d.x() + d.y() * d.y();
    if (distance >= nearest) continue;
    nearest = distance;
    best = i;
  }
  return best;
}

QString CheckpointTimeline::describe(int index) const {
  const node::CheckpointEntry& e = entries_[static_cast<std::size_t>(index)];
  QStringList parts{tr("Step %1").arg(Format::integer(e.step)), tr("saved %1").arg(Format::date_time(e.at))};
  if (e.loss) parts.append(tr("loss %1").arg(Format::loss(e.loss)));
  if (e.held_out_loss) parts.append(tr("held-out loss %1").arg(Format::loss(e.held_out_loss)));
  if (index == 0) parts.append(tr("newest"));
  if (e.pinned) parts.append(tr("pinned"));
  if (e.intact) parts.append(*e.intact ? tr("checked, intact") : tr("damaged"));
  if (!e.complete) parts.append(tr("incomplete"));
  return parts.join(tr(", "));
}

bool CheckpointTimeline::event(QEvent* event) {
  if (event->type() != QEvent::ToolTip) return QWidget::event(event);
  const auto* help = static_cast<QHelpEvent*>(event);
  const int index = index_at(help->pos());
  if (index >= 0)
    QToolTip::showText(help->globalPos(), describe(index), this);
  else
    QToolTip::hideText();
  return true;
}

void CheckpointTimeline::paintEvent(QPaintEvent*) {
  if (entries_.empty()) return;
  QPainter painter(this);
  picture_->paint(painter);
}

void CheckpointTimeline::paint_all(QPainter& painter) const {
  painter.setRenderHint(QPainter::Antialiasing);
  paint_axis(painter);
  paint_lines(painter);
  // The newest last, so that it is never hidden.
  for (int i = static_cast<int>(entries_.size()) - 1; i >= 0; --i) paint_mark(painter, i);
}

void CheckpointTimeline::paint_axis(QPainter& painter) const {
  const std::uint64_t first = entries_[static_cast<std::size_t>(by_step_.front())].step;
  const std::uint64_t last = entries_[static_cast<std::size_t>(by_step_.back())].step;
  const int y = height() - axis_height;
  painter.setPen(QPen(theme_.color(Token::Grid), 1));
  painter.drawLine(side / 2, y, width() - side / 2, y);
  const auto label = [&](std::uint64_t step, double x) {
    painter.setPen(QPen(theme_.color(Token::Grid), 1));
    painter.drawLine(QPointF(x, top - 8), QPointF(x, y));
    painter.setPen(theme_.color(Token::TextMuted));
    painter.drawText(QRectF(x - 50, y + 3, 100, axis_height - 4), Qt::AlignHCenter | Qt::AlignTop,
                     Format::integer(step));
  };
  if (first == last) {
    label(first, width() / 2.0);
    return;
  }
  const std::uint64_t by = tick_step(last - first, std::max(2, width() / 110));
  for (std::uint64_t step = (first + by - 1) / by * by; step <= last; step += by) {
    const double share = static_cast<double>(step - first) / static_cast<double>(last - first);
    label(step, across(share));
  }
}

void CheckpointTimeline::paint_lines(QPainter& painter) const {
  for (int i = 0; i < static_cast<int>(entries_.size()); ++i) {
    const CheckpointPlace& place = places_[static_cast<std::size_t>(i)];
    if (place.parent < 0) continue;
    const QPointF from = position(place.parent), to = position(i);
    painter.setPen(QPen(theme_.series(place.lane), 2));
    painter.setBrush(Qt::NoBrush);
    QPainterPath path(from);
    if (from.y() == to.y())
      path.lineTo(to);
    else {
      const double bend = std::clamp(to.x() - from.x(), -40.0, 40.0);  // towards the child
      path.cubicTo(QPointF(from.x() + bend / 2, from.y()), QPointF(from.x() + bend / 2, to.y()),
                   QPointF(from.x() + bend, to.y()));
      path.lineTo(to);
    }
    painter.drawPath(path);
  }
}

void CheckpointTimeline::paint_mark(QPainter& painter, int index) const {
  const auto i = static_cast<std::size_t>(index);
  const node::CheckpointEntry& e = entries_[i];
  const QPointF at = position(index);
  const QColor colour = theme_.series(places_[i].lane);
  const bool damaged = !e.complete || (e.intact && !*e.intact);
  if (selected_[i] || (hasFocus() && index == current_)) {
    painter.setPen(QPen(theme_.color(Token::Focus), hasFocus() && index == current_ ? 2 : 1));
    painter.setBrush(selected_[i] ? theme_.color(Token::Selection) : Qt::transparent);
    painter.drawEllipse(at, radius + 5, radius + 5);
  }
  painter.setPen(QPen(damaged ? theme_.color(Token::Danger) : colour, 2));
  painter.setBrush(damaged      ? theme_.color(Token::DangerSoft)
                   : index == 0 ? colour
                                : theme_.color(Token::Surface));
  const double size = index == 0 ? radius + 1.5 : radius;
  painter.drawEllipse(at, size, size);
  if (damaged) {
    painter.drawLine(at + QPointF(-3, -3), at + QPointF(3, 3));
    painter.drawLine(at + QPointF(-3, 3), at + QPointF(3, -3));
  } else if (e.intact) {
    const QColor ink = index == 0 ? theme_.color(Token::Surface) : theme_.color(Token::Working);
    painter.setPen(QPen(ink, 1.8));
    painter.drawPolyline(QPolygonF({at + QPointF(-3, 0), at + QPointF(-1, 2.5), at + QPointF(3.2, -2.5)}));
  }
  if (e.pinned)
    theme_.icon(QStringLiteral("pin"), Token::Text)
        .paint(&painter, QRectF(at.x() - 6, at.y() - 22, 12, 12).toRect());
}

void CheckpointTimeline::mousePressEvent(QMouseEvent* event) {
  const int index = index_at(event->position());
  if (event->button() != Qt::LeftButton || index < 0) return;
  move_to(index, event->modifiers().testFlag(Qt::ControlModifier));
}

void CheckpointTimeline::mouseDoubleClickEvent(QMouseEvent* event) {
  const int index = index_at(event->position());
  if (index >= 0) Q_EMIT activated(QString::fromStdString(entries_[static_cast<std::size_t>(index)].name));
}

void CheckpointTimeline::move_to(int index, bool add) {
  if (index < 0) return;
  current_ = index;
  setAccessibleDescription(describe(index));
  Q_EMIT selected(QString::fromStdString(entries_[static_cast<std::size_t>(index)].name), add);
  picture_->invalidate();
}

int CheckpointTimeline::neighbour(int dx, int dy) const {
  if (entries_.empty()) return -1;
  if (current_ < 0) return 0;
  const auto lane_of = [this](int index) { return places_[static_cast<std::size_t>(index)].lane; };
  if (dx != 0) {
    const auto at = std::find(by_step_.begin(), by_step_.end(), current_) - by_step_.begin();
    for (auto i = at + dx; i >= 0 && i < static_cast<std::ptrdiff_t>(by_step_.size()); i += dx)
      if (lane_of(by_step_[static_cast<std::size_t>(i)]) == lane_of(current_))
        return by_step_[static_cast<std::size_t>(i)];
    return current_;
  }
  // The nearest mark of the next branch in that direction.
  int best = current_;
  double nearest = 1e18;
  for (int i = 0; i < static_cast<int>(entries_.size()); ++i) {
    const int lanes = (lane_of(i) - lane_of(current_)) * dy;
    const double distance = lanes * 1e9 + std::abs(position(i).x() - position(current_).x());
    if (lanes <= 0 || distance >= nearest) continue;
    nearest = distance;
    best = i;
  }
  return best;
}

void CheckpointTimeline::keyPressEvent(QKeyEvent* event) {
  const bool add = event->modifiers().testFlag(Qt::ControlModifier);
  const int right = layoutDirection() == Qt::RightToLeft ? -1 : 1;
  switch (event->key()) {
    case Qt::Key_Left: return move_to(neighbour(-right, 0), add);
    case Qt::Key_Right: return move_to(neighbour(right, 0), add);
    case Qt::Key_Up: return move_to(neighbour(0, -1), add);
    case Qt::Key_Down: return move_to(neighbour(0, 1), add);
    case Qt::Key_Home: return move_to(by_step_.empty() ? -1 : by_step_.front(), add);
    case Qt::Key_End: return move_to(by_step_.empty() ? -1 : by_step_.back(), add);
    case Qt::Key_Return:
    case Qt::Key_Enter:
      if (current_ >= 0)
        Q_EMIT activated(QString::fromStdString(entries_[static_cast<std::size_t>(current_)].name));
      return;
    default: QWidget::keyPressEvent(event);
  }
}

void CheckpointTimeline::focusInEvent(QFocusEvent* event) {
  if (current_ < 0 && !entries_.empty()) current_ = 0;
  QWidget::focusInEvent(event);
  picture_->invalidate();
}

void CheckpointTimeline::focusOutEvent(QFocusEvent* event) {
  QWidget::focusOutEvent(event);
  picture_->invalidate();
}

}  // namespace neuroshard::ui
