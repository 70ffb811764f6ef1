// Bars over named things, in the colours of the theme. QtCharts draws it.
#pragma once

#include <QString>
#include <vector>

class QWidget;

namespace neuroshard::ui {

class Theme;

struct BarValue {
  QString name;
  double value = 0;
};
// A new widget without a parent. Wide enough for every bar: put it into a scroll area. `name` is for screen
// readers.
QWidget* make_bar_chart(const Theme& theme, const std::vector<BarValue>& bars, const QString& axis_title,
                        const QString& name);

}  // namespace neuroshard::ui
