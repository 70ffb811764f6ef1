// The hours of a week, 7 days by 24 hours: painted with the mouse or the keyboard, by day and by hour with
// one click.
#pragma once

#include <QWidget>

#include "core/base/week_hours.h"

namespace neuroshard::ui {

class Theme;

// Threads: ui.
class WeekGrid final : public QWidget {
  Q_OBJECT
 public:
  explicit WeekGrid(const Theme& theme, QWidget* parent = nullptr);

  void set_hours(const WeekHours& hours);
  const WeekHours& hours() const { return hours_; }
  QRect cell(int day, int hour) const;  // where it is drawn

  QSize sizeHint() const override { return {560, 200}; }
  QSize minimumSizeHint() const override { return {420, 200}; }

 Q_SIGNALS:
  void edited(const neuroshard::WeekHours& hours);  // by the person, once per stroke

 protected:
  void paintEvent(QPaintEvent* event) override;
  void mousePressEvent(QMouseEvent* event) override;
  void mouseMoveEvent(QMouseEvent* event) override;
  void mouseReleaseEvent(QMouseEvent* event) override;
  void keyPressEvent(QKeyEvent* event) override;
  void focusInEvent(QFocusEvent* event) override;
  void focusOutEvent(QFocusEvent* event) override;

 private:
  struct Place {
    int day = -1, hour = -1;  // -1 = the heading of the row, of the column
  };
  Place place(const QPoint& point) const;
  void fill(const Place& from, const Place& to, bool on);
  void toggle(const Place& at);
  void describe();

  const Theme& theme_;
  WeekHours hours_ = WeekHours::always();
  WeekHours before_;  // of the stroke that is being painted
  Place start_, cursor_{0, 0};
  bool painting_ = false, paint_on_ = false;
};

}  // namespace neuroshard::ui
