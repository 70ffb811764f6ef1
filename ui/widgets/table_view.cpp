#include "ui/widgets/table_view.h"

#include <QApplication>
#include <QClipboard>
#include <QHeaderView>
#include <QKeyEvent>
#include <QPainter>
#include <cmath>

#include "ui/widgets/tabular_text.h"

namespace neuroshard::ui {
namespace {
constexpr int row_height = 32, side_padding = 8;
}  // namespace

TableView::TableView(const QString& accessible_name, QWidget* parent) : QTableView(parent) {
  setAccessibleName(accessible_name);
  setShowGrid(false);
  setSelectionBehavior(QAbstractItemView::SelectRows);
  setSelectionMode(QAbstractItemView::ExtendedSelection);
  setEditTriggers(QAbstractItemView::NoEditTriggers);
  setAlternatingRowColors(false);
  setWordWrap(false);
  setTabKeyNavigation(false);  // Tab leaves the table; arrows move in it
  setVerticalScrollMode(QAbstractItemView::ScrollPerPixel);
  setHorizontalScrollMode(QAbstractItemView::ScrollPerPixel);
  verticalHeader()->hide();
  verticalHeader()->setDefaultSectionSize(row_height);
  horizontalHeader()->setHighlightSections(false);
  horizontalHeader()->setDefaultAlignment(Qt::AlignLeft | Qt::AlignVCenter);
  horizontalHeader()->setStretchLastSection(true);
  setItemDelegate(new TabularDelegate(this));
}

void TableView::setModel(QAbstractItemModel* model) {
  QTableView::setModel(model);
}

void TableView::copy_selection() const {
  if (model() == nullptr || selectionModel() == nullptr) return;
  QStringList lines, cells;
  for (int column = 0; column < model()->columnCount(); ++column)
    cells << model()->headerData(column, Qt::Horizontal).toString();
  lines << cells.join(QLatin1Char('\t'));
  QModelIndexList rows = selectionModel()->selectedRows();
  std::sort(rows.begin(), rows.end());
  for (const QModelIndex& row : rows) {
    cells.clear();
    for (int column = 0; column < model()->columnCount(); ++column)
      cells << row.siblingAtColumn(column).data().toString();
    lines << cells.join(QLatin1Char('\t'));
  }
  QApplication::clipboard()->setText(lines.join(QLatin1Char('\n')));
}

void TableView::keyPressEvent(QKeyEvent* event) {
  if (event->matches(QKeySequence::Copy)) return copy_selection();
  QTableView::keyPressEvent(event);
}

void TabularDelegate::paint(QPainter* painter, const QStyleOptionViewItem& option,
                            const QModelIndex& index) const {
  const auto alignment = Qt::Alignment(index.data(Qt::TextAlignmentRole).toInt());
  if (!alignment.testFlag(Qt::AlignRight)) return QStyledItemDelegate::paint(painter, option, index);
  QStyleOptionViewItem bare = option;
  initStyleOption(&bare, index);
  const QString text = bare.text;
  bare.text.clear();
  const QStyle* style = bare.widget != nullptr ? bare.widget->style() : QApplication::style();
  style->drawControl(QStyle::CE_ItemViewItem, &bare, painter, bare.widget);
  painter->save();
  painter->setFont(bare.font);
  const QVariant colour = index.data(Qt::ForegroundRole);
  painter->setPen(colour.isValid() ? colour.value<QBrush>().color() : bare.palette.color(QPalette::Text));
  painter->setClipRect(bare.rect);
  draw_tabular(*painter, QRectF(bare.rect).adjusted(side_padding, 0, -side_padding, 0),
               Qt::AlignRight | Qt::AlignVCenter, text);
  painter->restore();
}

QSize TabularDelegate::sizeHint(const QStyleOptionViewItem& option, const QModelIndex& index) const {
  QSize size = QStyledItemDelegate::sizeHint(option, index);
  const qreal width = tabular_width(index.data().toString(), QFontMetricsF(option.font)) + 2.0 * side_padding;
  size.setWidth(std::max(size.width(), static_cast<int>(std::ceil(width))));
  return size;
}

}  // namespace neuroshard::ui
