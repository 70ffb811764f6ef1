#include "ui/pages/week_grid.h"

#include <QKeyEvent>
#include <QLocale>
#include <QMouseEvent>
#include <QPainter>
#include <QStyle>
#include <algorithm>

#include "ui/theme/theme.h"

namespace neuroshard::ui {
namespace {

constexpr int head_width = 44, head_height = 22;

QString day_name(int day, QLocale::FormatType format) {
  return QLocale().standaloneDayName(day + 1, format);
}

}  // namespace

WeekGrid::WeekGrid(const Theme& theme, QWidget* parent) : QWidget(parent), theme_(theme) {
  setFocusPolicy(Qt::StrongFocus);
  setAccessibleName(tr("Hours of the week"));
  setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Fixed);
  connect(&theme_, &Theme::changed, this, QOverload<>::of(&QWidget::update));
  describe();
}

void WeekGrid::set_hours(const WeekHours& hours) {
  if (painting_ || hours == hours_) return;
  hours_ = hours;
  describe();
  update();
}

QRect WeekGrid::cell(int day, int hour) const {
  const int wide = width() - head_width, high = height() - head_height;
  const int left = head_width + hour * wide / WeekHours::hours,
            top = head_height + day * high / WeekHours::days;
  const QRect box(left, top, head_width + (hour + 1) * wide / WeekHours::hours - left,
                  head_height + (day + 1) * high / WeekHours::days - top);
  return QStyle::visualRect(layoutDirection(), rect(), box);  // the week begins where the language does
}

WeekGrid::Place WeekGrid::place(const QPoint& point) const {
  const QPoint at = QStyle::visualPos(layoutDirection(), rect(), point);
  Place found;
  if (at.x() >= head_width)
    found.hour =
        std::clamp((at.x() - head_width) * WeekHours::hours / std::max(1, width() - head_width), 0, 23);
  if (at.y() >= head_height)
    found.day =
        std::clamp((at.y() - head_height) * WeekHours::days / std::max(1, height() - head_height), 0, 6);
  return found;
}

void WeekGrid::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  painter.setRenderHint(QPainter::Antialiasing);
  painter.setPen(theme_.color(Token::TextMuted));
  const bool rtl = layoutDirection() == Qt::RightToLeft;
  const int every = (width() - head_width) / WeekHours::hours < 24 ? 3 : 1;
  for (int hour = 0; hour < WeekHours::hours; hour += every) {
    const QRect at = cell(0, hour);
    painter.drawText(QRect(at.left() - 10, 0, at.width() + 20, head_height), Qt::AlignCenter,
                     QString::number(hour));
  }
  for (int day = 0; day < WeekHours::days; ++day) {
    const QRect row = cell(day, 0);
    painter.setPen(theme_.color(Token::TextMuted));
    // Beside the first hour.
    const QRect head(0, row.top(), head_width - 6, row.height());
    painter.drawText(
        QStyle::visualRect(layoutDirection(), rect(), head),
        static_cast<int>(Qt::AlignVCenter | Qt::AlignAbsolute | (rtl ? Qt::AlignLeft : Qt::AlignRight)),
        day_name(day, QLocale::ShortFormat));
    for (int hour = 0; hour < WeekHours::hours; ++hour) {
      const bool on = hours_.at(day, hour);
      painter.setPen(Qt::NoPen);
      painter.setBrush(theme_.color(on ? Token::Accent : Token::SurfaceAlt));
      const QRect box = cell(day, hour).adjusted(1, 1, -1, -1);
      painter.drawRoundedRect(box, 3, 3);
      if (!on) {  // told apart by more than colour
        painter.setPen(QPen(theme_.color(Token::BorderStrong), 1));
        painter.drawLine(box.center() - QPoint(3, 0), box.center() + QPoint(3, 0));
      }
    }
  }
  if (hasFocus()) {
    painter.setBrush(Qt::NoBrush);
    painter.setPen(QPen(theme_.color(Token::Text), 2));
    painter.drawRoundedRect(cell(cursor_.day, cursor_.hour), 4, 4);
  }
}

void WeekGrid::fill(const Place& from, const Place& to, bool on) {
  for (int day = std::min(from.day, to.day); day <= std::max(from.day, to.day); ++day)
    for (int hour = std::min(from.hour, to.hour); hour <= std::max(from.hour, to.hour); ++hour)
      hours_.set(day, hour, on);
}

void WeekGrid::toggle(const Place& at) {
  // A heading stands for its whole row or column, the corner for all; all of them become what the first one
  // is not.
  const Place from{std::max(0, at.day), std::max(0, at.hour)};
  const Place to{at.day < 0 ? WeekHours::days - 1 : at.day, at.hour < 0 ? WeekHours::hours - 1 : at.hour};
  fill(from, to, !hours_.at(from.day, from.hour));
}

void WeekGrid::mousePressEvent(QMouseEvent* event) {
  if (event->button() != Qt::LeftButton) return;
  before_ = hours_;
  start_ = place(event->position().toPoint());
  painting_ = true;
  if (start_.day >= 0 && start_.hour >= 0) {
    paint_on_ = !hours_.at(start_.day, start_.hour);
    cursor_ = start_;
  }
  toggle(start_);
  update();
}

void WeekGrid::mouseMoveEvent(QMouseEvent* event) {
  if (!painting_ || start_.day < 0 || start_.hour < 0) return;
  const Place now = place(event->position().toPoint());
  hours_ = before_;
  fill(start_, {std::max(0, now.day), std::max(0, now.hour)}, paint_on_);
  update();
}

void WeekGrid::mouseReleaseEvent(QMouseEvent*) {
  if (!painting_) return;
  painting_ = false;
  describe();
  if (!(hours_ == before_)) Q_EMIT edited(hours_);
}

void WeekGrid::keyPressEvent(QKeyEvent* event) {
  const bool paint = event->modifiers().testFlag(Qt::ShiftModifier);
  const bool was = hours_.at(cursor_.day, cursor_.hour);
  const int right = layoutDirection() == Qt::RightToLeft ? -1 : 1;
  const auto go = [this](int by) { cursor_.hour = std::clamp(cursor_.hour + by, 0, WeekHours::hours - 1); };
  switch (event->key()) {
    case Qt::Key_Left: go(-right); break;
    case Qt::Key_Right: go(right); break;
    case Qt::Key_Up: cursor_.day = std::max(0, cursor_.day - 1); break;
    case Qt::Key_Down: cursor_.day = std::min(WeekHours::days - 1, cursor_.day + 1); break;
    case Qt::Key_Home: cursor_.hour = 0; break;
    case Qt::Key_End: cursor_.hour = WeekHours::hours - 1; break;
    case Qt::Key_Space:
    case Qt::Key_Return:
      toggle(cursor_);
      describe();
      update();
      Q_EMIT edited(hours_);
      return;
    default: return QWidget::keyPressEvent(event);
  }
  // With Shift, the hour that one comes from is painted over the one that one goes to.
  if (paint && hours_.at(cursor_.day, cursor_.hour) != was) {
    hours_.set(cursor_.day, cursor_.hour, was);
    Q_EMIT edited(hours_);
  }
  describe();
  update();
}

void WeekGrid::describe() {
  setAccessibleDescription(
      tr("%1 %2 to %3: %4. Space changes it, arrows move, Shift with an arrow paints. As text: %5")
          .arg(day_name(cursor_.day, QLocale::LongFormat))
          .arg(cursor_.hour)
          .arg(cursor_.hour + 1)
          .arg(hours_.at(cursor_.day, cursor_.hour) ? tr("on") : tr("off"),
               QString::fromStdString(hours_.text())));
}

void WeekGrid::focusInEvent(QFocusEvent* event) {
  QWidget::focusInEvent(event);
  update();
}
void WeekGrid::focusOutEvent(QFocusEvent* event) {
  QWidget::focusOutEvent(event);
  update();
}

}  // namespace neuroshard::ui
