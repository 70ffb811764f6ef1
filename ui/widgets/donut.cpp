#include "ui/widgets/donut.h"

#include <QBoxLayout>
#include <QChart>
#include <QChartView>
#include <QPieSeries>
#include <QPieSlice>
#include <algorithm>

#include "ui/theme/theme.h"
#include "ui/widgets/chart_style.h"

namespace neuroshard::ui {
namespace {
constexpr int side = 128, gap = 20;
constexpr double hole = 0.62, whole = 0.98;  // of the view's half width
}  // namespace

Donut::Donut(const Theme& theme, const QString& accessible_name, QWidget* parent)
    : QWidget(parent), theme_(theme) {
  setAccessibleName(accessible_name);
  QChart* chart = make_chart();
  ring_ = new QPieSeries;
  ring_->setHoleSize(hole);
  ring_->setPieSize(whole);
  chart->addSeries(ring_);
  view_ = make_chart_view(chart, this);
  view_->setFixedSize(side, side);
  legend_ = new ShareLegend(theme, this);
  layout_ = new QBoxLayout(QBoxLayout::LeftToRight, this);
  layout_->setContentsMargins(0, 0, 0, 0);
  layout_->setSpacing(gap);
  layout_->addWidget(view_, 0, Qt::AlignCenter);
  layout_->addWidget(legend_, 1);
  connect(&theme, &Theme::changed, this, &Donut::paint_in_theme);
}

bool Donut::fits_beside(int width) const {
  return width >= side + gap + legend_->minimumSizeHint().width();
}

QSize Donut::minimumSizeHint() const {
  const QSize legend = legend_->minimumSizeHint();
  return {std::max(side, legend.width()),
          fits_beside(width()) ? std::max(side, legend.height()) : side + gap + legend.height()};
}

void Donut::resizeEvent(QResizeEvent* event) {
  QWidget::resizeEvent(event);
  const auto direction = fits_beside(width()) ? QBoxLayout::LeftToRight : QBoxLayout::TopToBottom;
  if (direction == layout_->direction()) return;
  layout_->setDirection(direction);
  updateGeometry();
}

void Donut::paint_in_theme() {
  const auto slices = ring_->slices();
  for (int i = 0; i < slices.size(); ++i) {
    slices[i]->setBrush(theme_.series(i));
    slices[i]->setPen(QPen(theme_.color(Token::Surface), 2));
  }
}

void Donut::set_parts(std::vector<SharePart> parts) {
  if (parts == parts_) return;
  parts_ = std::move(parts);
  if (ring_->count() != static_cast<int>(parts_.size())) {
    ring_->clear();
    for (const SharePart& part : parts_) ring_->append(part.name, 0);
    paint_in_theme();
  }
  const auto slices = ring_->slices();
  for (int i = 0; i < slices.size(); ++i) {
    const SharePart& part = parts_[static_cast<std::size_t>(i)];
    slices[i]->setLabel(part.name);
    slices[i]->setValue(std::max(0.0, part.value));
  }
  legend_->set_parts(parts_);
  setAccessibleDescription(describe(parts_));
}

}  // namespace neuroshard::ui
