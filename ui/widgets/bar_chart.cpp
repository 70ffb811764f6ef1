#include "ui/widgets/bar_chart.h"

#include <QBarCategoryAxis>
#include <QBarSeries>
#include <QBarSet>
#include <QChart>
#include <QChartView>
#include <QVBoxLayout>
#include <QValueAxis>
#include <algorithm>

#include "ui/text/format.h"
#include "ui/theme/theme.h"
#include "ui/widgets/chart_style.h"
#include "ui/widgets/csv.h"

namespace neuroshard::ui {
namespace {
constexpr int least_height = 190, upright_height = 240, bar_pitch = 26, axis_width = 90;
constexpr int upright_above = 6;  // fewer names have room side by side
}  // namespace

BarChart::BarChart(const Theme& theme, const QString& accessible_name, const QString& x_title,
                   const QString& y_title, QWidget* parent)
    : QWidget(parent), theme_(theme), x_title_(x_title), y_title_(y_title) {
  setAccessibleName(accessible_name);
  QChart* chart = make_chart();
  bars_ = new QBarSet(accessible_name);
  auto* series = new QBarSeries;
  series->append(bars_);
  series->setBarWidth(0.8);
  chart->addSeries(series);
  x_ = new QBarCategoryAxis;
  x_->setTitleText(x_title);
  x_->setGridLineVisible(false);
  y_ = new QValueAxis;
  y_->setTitleText(y_title);
  chart->addAxis(x_, Qt::AlignBottom);
  chart->addAxis(y_, Qt::AlignLeft);
  series->attachAxis(x_);
  series->attachAxis(y_);
  view_ = make_chart_view(chart, this);
  setMinimumHeight(least_height);
  auto* column = new QVBoxLayout(this);
  column->setContentsMargins(0, 0, 0, 0);
  column->addWidget(view_);
  connect(&theme, &Theme::changed, this, &BarChart::paint_in_theme);
  paint_in_theme();
  scale();
}

void BarChart::paint_in_theme() {
  style_axis(*x_, theme_);
  style_axis(*y_, theme_);
  bars_->setColor(theme_.series(0));
  bars_->setBorderColor(theme_.series(0));
}

void BarChart::set_whole_numbers(bool on) {
  whole_ = on;
  scale();
}

void BarChart::set_names_upright(bool on) {
  upright_ = on;
  scale();
}

void BarChart::set_bars(const QStringList& names, const std::vector<double>& values) {
  if (names == names_ && values == values_) return;
  if (names != names_) {
    names_ = names;
    x_->setCategories(names);
  }
  values_ = values;
  while (bars_->count() > static_cast<int>(values.size())) bars_->remove(bars_->count() - 1);
  QStringList words;
  for (int i = 0; i < static_cast<int>(values.size()); ++i) {
    const double value = values[static_cast<std::size_t>(i)];
    i < bars_->count() ? bars_->replace(i, value) : bars_->append(value);
    if (i < names.size())
      words << tr("%1: %2").arg(names[i],
                                whole_ ? Format::integer(static_cast<std::uint64_t>(std::max(0.0, value)))
                                       : Format::significant(value, 3));
  }
  scale();
  setAccessibleDescription(words.join(QStringLiteral("; ")));
}

void BarChart::scale() {
  const double most = values_.empty() ? 0 : *std::max_element(values_.begin(), values_.end());
  y_->setLabelFormat(whole_       ? QStringLiteral("%d")
                     : most < 0.1 ? QStringLiteral("%.3f")
                                  : QStringLiteral("%.2f"));
  if (whole_) {
    y_->setRange(0, std::max(1.0, most));
    y_->applyNiceNumbers();
    // Marks between two whole numbers would carry the same label twice.
    if (y_->max() < y_->tickCount() - 1) y_->setTickCount(static_cast<int>(y_->max()) + 1);
  } else {
    y_->setRange(0, most > 0 ? most : 1);
    y_->applyNiceNumbers();
  }
  const bool upright = upright_ && names_.size() > upright_above;
  x_->setLabelsAngle(upright ? -60 : 0);
  // Qt cuts a label to the width of its bar, also one that has room beside it.
  const auto is_short = [](const QString& name) { return name.size() <= 4; };
  x_->setTruncateLabels(!std::all_of(names_.begin(), names_.end(), is_short));
  if (upright) setMinimumSize(axis_width + bar_pitch * static_cast<int>(names_.size()), upright_height);
}

QString BarChart::csv() const {
  QString text = csv_line({x_title_, y_title_});
  for (std::size_t i = 0; i < values_.size(); ++i)
    text += csv_line({names_.value(static_cast<int>(i)), csv_number(values_[i])});
  return text;
}

}  // namespace neuroshard::ui
