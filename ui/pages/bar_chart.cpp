#include "ui/pages/bar_chart.h"

#include <QBarCategoryAxis>
#include <QBarSeries>
#include <QBarSet>
#include <QChart>
#include <QChartView>
#include <QValueAxis>
#include <algorithm>

#include "ui/theme/theme.h"

namespace neuroshard::ui {
namespace {

constexpr int bar_width = 26, margin_width = 120, chart_height = 240;

void colour(QChart& chart, QBarSet& set, const Theme& theme) {
  chart.setBackgroundBrush(Qt::NoBrush);
  chart.setPlotAreaBackgroundVisible(false);
  set.setColor(theme.series(0));
  set.setBorderColor(theme.series(0));
  const auto axes = chart.axes();
  for (QAbstractAxis* axis : axes) {
    axis->setLabelsColor(theme.color(Token::TextMuted));
    axis->setTitleBrush(theme.color(Token::TextMuted));
    axis->setGridLineColor(theme.color(Token::Grid));
    axis->setLinePenColor(theme.color(Token::Border));
  }
}

}  // namespace

QWidget* make_bar_chart(const Theme& theme, const std::vector<BarValue>& bars, const QString& axis_title,
                        const QString& name) {
  auto* chart = new QChart;
  auto* set = new QBarSet(name);
  QStringList names;
  double most = 0;
  for (const BarValue& bar : bars) {
    set->append(bar.value);
    names.append(bar.name);
    most = std::max(most, bar.value);
  }
  auto* series = new QBarSeries(chart);
  series->append(set);
  series->setBarWidth(0.7);
  chart->addSeries(series);
  chart->legend()->hide();
  chart->setMargins({});
  auto* categories = new QBarCategoryAxis(chart);
  categories->append(names);
  categories->setGridLineVisible(false);
  // Names of layers are longer than a bar is wide.
  categories->setLabelsAngle(names.size() > 6 ? -60 : 0);
  chart->addAxis(categories, Qt::AlignBottom);
  series->attachAxis(categories);
  auto* values = new QValueAxis(chart);
  values->setRange(0, most > 0 ? most * 1.1 : 1);
  values->setTitleText(axis_title);
  values->setLabelFormat(most < 0.1 ? QStringLiteral("%.3f") : QStringLiteral("%.2f"));
  values->setTickCount(4);
  chart->addAxis(values, Qt::AlignLeft);
  series->attachAxis(values);

  auto* view = new QChartView(chart);
  view->setRenderHint(QPainter::Antialiasing);
  view->setFrameShape(QFrame::NoFrame);
  view->setBackgroundBrush(Qt::NoBrush);
  view->viewport()->setAutoFillBackground(false);
  view->setFocusPolicy(Qt::NoFocus);
  view->setAccessibleName(name);
  view->setMinimumSize(margin_width + bar_width * static_cast<int>(bars.size()), chart_height);
  colour(*chart, *set, theme);
  QObject::connect(&theme, &Theme::changed, view, [chart, set, &theme] { colour(*chart, *set, theme); });
  return view;
}

}  // namespace neuroshard::ui
