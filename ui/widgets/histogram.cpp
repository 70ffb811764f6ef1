#include "ui/widgets/histogram.h"

#include <QBarCategoryAxis>
#include <QBarSeries>
#include <QBarSet>
#include <QChart>
#include <QChartView>
#include <QVBoxLayout>
#include <QValueAxis>
#include <algorithm>

#include "ui/theme/theme.h"

namespace neuroshard::ui {

Histogram::Histogram(const Theme& theme, const QString& accessible_name, const QString& x_title,
                     const QString& y_title, QWidget* parent)
    : QWidget(parent), theme_(theme) {
  setAccessibleName(accessible_name);
  auto* chart = new QChart;
  bars_ = new QBarSet(accessible_name);
  auto* series = new QBarSeries;
  series->append(bars_);
  series->setBarWidth(0.9);
  chart->addSeries(series);
  chart->legend()->hide();
  chart->setMargins({0, 0, 0, 0});
  chart->setBackgroundVisible(false);
  x_ = new QBarCategoryAxis;
  x_->setTitleText(x_title);
  x_->setGridLineVisible(false);
  y_ = new QValueAxis;
  y_->setTitleText(y_title);
  y_->setLabelFormat(QStringLiteral("%d"));
  chart->addAxis(x_, Qt::AlignBottom);
  chart->addAxis(y_, Qt::AlignLeft);
  series->attachAxis(x_);
  series->attachAxis(y_);
  view_ = new QChartView(chart, this);
  view_->setRenderHint(QPainter::Antialiasing);
  view_->setFrameShape(QFrame::NoFrame);
  view_->setFocusPolicy(Qt::NoFocus);
  view_->setStyleSheet(QStringLiteral("background: transparent"));
  view_->setMinimumHeight(180);
  auto* column = new QVBoxLayout(this);
  column->setContentsMargins(0, 0, 0, 0);
  column->addWidget(view_);
  connect(&theme, &Theme::changed, this, &Histogram::paint_in_theme);
  paint_in_theme();
}

void Histogram::paint_in_theme() {
  const QColor text = theme_.color(Token::TextMuted);
  QFont small = font();
  small.setPixelSize(12);
  for (QAbstractAxis* axis : {static_cast<QAbstractAxis*>(x_), static_cast<QAbstractAxis*>(y_)}) {
    axis->setLabelsColor(text);
    axis->setLabelsFont(small);
    axis->setTitleBrush(text);
    axis->setTitleFont(small);
    axis->setLinePenColor(theme_.color(Token::Border));
    axis->setGridLineColor(theme_.color(Token::Grid));
  }
  bars_->setColor(theme_.series(0));
  bars_->setBorderColor(theme_.series(0));
}

void Histogram::set_bars(const QStringList& names, const std::vector<double>& values) {
  if (names == names_ && values == values_) return;
  if (names != names_) {
    names_ = names;
    x_->setCategories(names);
  }
  values_ = values;
  while (bars_->count() > static_cast<int>(values.size())) bars_->remove(bars_->count() - 1);
  double most = 1;
  QStringList words;
  for (int i = 0; i < static_cast<int>(values.size()); ++i) {
    const double value = values[static_cast<std::size_t>(i)];
    i < bars_->count() ? bars_->replace(i, value) : bars_->append(value);
    most = std::max(most, value);
    if (i < names.size()) words << QStringLiteral("%1: %2").arg(names[i]).arg(value);
  }
  y_->setRange(0, most);
  y_->applyNiceNumbers();
  setAccessibleDescription(words.join(QStringLiteral("; ")));
}

}  // namespace neuroshard::ui
