#include "ui/widgets/card_grid.h"

#include <QGridLayout>
#include <algorithm>

namespace neuroshard::ui {
namespace {
constexpr int gap = 12;
}  // namespace

CardGrid::CardGrid(int column_width, QWidget* parent, int most_columns)
    : QWidget(parent), column_width_(column_width), most_columns_(most_columns) {
  grid_ = new QGridLayout(this);
  grid_->setContentsMargins(0, 0, 0, 0);
  grid_->setSpacing(gap);
}

void CardGrid::add(QWidget* card, int span) {
  card->setParent(this);
  items_.push_back({card, std::clamp(span, 1, most_columns_)});
  columns_ = 0;  // arranged again
  arrange();
}

void CardGrid::arrange() {
  const int fitting = std::clamp((width() + gap) / (column_width_ + gap), 1, most_columns_);
  if (fitting == columns_) return;
  columns_ = fitting;
  for (const Item& item : items_) grid_->removeWidget(item.card);
  const auto span_of = [this](std::size_t i) { return std::min(items_[i].span, columns_); };
  int row = 0, column = 0;
  for (std::size_t i = 0; i < items_.size(); ++i) {
    const int left = columns_ - column - span_of(i);
    const bool last = i + 1 == items_.size() || span_of(i + 1) > left;
    grid_->addWidget(items_[i].card, row, column, 1, span_of(i) + (last ? left : 0));
    column = last ? 0 : column + span_of(i);
    row += last ? 1 : 0;
  }
  for (int i = 0; i < most_columns_; ++i) grid_->setColumnStretch(i, i < columns_ ? 1 : 0);
}

QSize CardGrid::minimumSizeHint() const {
  // The widest card in one column: more columns are a matter of room, not a demand.
  int width = 0;
  for (const Item& item : items_) width = std::max(width, item.card->minimumSizeHint().width());
  return {width, QWidget::minimumSizeHint().height()};
}

void CardGrid::resizeEvent(QResizeEvent* event) {
  QWidget::resizeEvent(event);
  arrange();
}

}  // namespace neuroshard::ui
