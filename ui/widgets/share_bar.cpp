#include "ui/widgets/share_bar.h"

#include <QBarCategoryAxis>
#include <QBarSet>
#include <QChart>
#include <QChartView>
#include <QHorizontalPercentBarSeries>
#include <QVBoxLayout>
#include <QValueAxis>
#include <algorithm>

#include "ui/theme/theme.h"
#include "ui/widgets/chart_style.h"

namespace neuroshard::ui {
namespace {
constexpr int bar_height = 28, gap = 8;
}  // namespace

ShareBar::ShareBar(const Theme& theme, const QString& accessible_name, QWidget* parent)
    : QWidget(parent), theme_(theme) {
  setAccessibleName(accessible_name);
  QChart* chart = make_chart();
  series_ = new QHorizontalPercentBarSeries;
  series_->setBarWidth(1);
  chart->addSeries(series_);
  auto* whole = new QValueAxis;
  whole->setRange(0, 100);
  auto* one = new QBarCategoryAxis;
  one->append(QString());
  chart->addAxis(whole, Qt::AlignBottom);
  chart->addAxis(one, Qt::AlignLeft);
  series_->attachAxis(whole);
  series_->attachAxis(one);
  whole->setVisible(false);
  one->setVisible(false);
  view_ = make_chart_view(chart, this);
  view_->setFixedHeight(bar_height);
  legend_ = new ShareLegend(theme, this);
  auto* column = new QVBoxLayout(this);
  column->setContentsMargins(0, 0, 0, 0);
  column->setSpacing(gap);
  column->addWidget(view_);
  column->addWidget(legend_);
  connect(&theme, &Theme::changed, this, &ShareBar::paint_in_theme);
}

void ShareBar::paint_in_theme() {
  for (std::size_t i = 0; i < sets_.size(); ++i) {
    sets_[i]->setColor(theme_.series(static_cast<int>(i)));
    sets_[i]->setBorderColor(theme_.color(Token::Surface));
  }
}

void ShareBar::set_parts(std::vector<SharePart> parts) {
  if (parts == parts_) return;
  parts_ = std::move(parts);
  if (sets_.size() != parts_.size()) {
    series_->clear();
    sets_.clear();
    for (const SharePart& part : parts_) {
      auto* set = new QBarSet(part.name);
      set->append(0);
      series_->append(set);
      sets_.push_back(set);
    }
    paint_in_theme();
  }
  for (std::size_t i = 0; i < parts_.size(); ++i) sets_[i]->replace(0, std::max(0.0, parts_[i].value));
  legend_->set_parts(parts_);
  setAccessibleDescription(describe(parts_));
}

}  // namespace neuroshard::ui
