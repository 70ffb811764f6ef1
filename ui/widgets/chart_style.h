// QtCharts as the app wears them: no frame, no own background, the theme's colours; it never takes the wheel
// or the focus.
#pragma once

#include <QImage>
#include <QString>

class QAbstractAxis;
class QChart;
class QChartView;
class QWidget;

namespace neuroshard::ui {

class Theme;

QChart* make_chart();                                         // without legend and margins
QChartView* make_chart_view(QChart* chart, QWidget* parent);  // takes the chart
void style_axis(QAbstractAxis& axis, const Theme& theme);
// The widget with all that is in it, twice as sharp as on a plain screen, on the colour of a card.
QImage picture_of(QWidget& widget, const Theme& theme);

}  // namespace neuroshard::ui
