#include "ui/widgets/table_view.h"

#include <QAction>
#include <QApplication>
#include <QClipboard>
#include <QContextMenuEvent>
#include <QHeaderView>
#include <QKeyEvent>
#include <QMenu>
#include <QPainter>
#include <algorithm>
#include <cmath>

#include "ui/widgets/csv.h"
#include "ui/widgets/tabular_text.h"

namespace neuroshard::ui {
namespace {
constexpr int row_height = 32, side_padding = 8, icon_side = 16;
constexpr int rows_that_set_widths = 20;  // of columns that fit their contents, beside the rows in view
constexpr int heading_padding = 12;       // as the style sheet has it, and a little more

// The style sheet makes headings bolder than the font that their widths are computed with.
class Headings final : public QHeaderView {
 public:
  explicit Headings(QWidget* parent) : QHeaderView(Qt::Horizontal, parent) {
    setSectionsClickable(true);
    setHighlightSections(false);
  }

 protected:
  QSize sectionSizeFromContents(int section) const override {
    QSize size = QHeaderView::sectionSizeFromContents(section);
    if (model() == nullptr) return size;
    QFont bold = font();
    bold.setWeight(QFont::DemiBold);
    const QString text = model()->headerData(section, orientation(), Qt::DisplayRole).toString();
    const int arrow = isSortIndicatorShown() ? icon_side : 0;
    size.setWidth(
        std::max(size.width(), QFontMetrics(bold).horizontalAdvance(text) + 2 * heading_padding + arrow));
    return size;
  }
};
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
  setHorizontalHeader(new Headings(this));
  horizontalHeader()->setDefaultAlignment(Qt::AlignLeft | Qt::AlignVCenter);
  horizontalHeader()->setStretchLastSection(true);
  horizontalHeader()->setResizeContentsPrecision(rows_that_set_widths);
  setItemDelegate(new TabularDelegate(this));
  copy_ = new QAction(tr("Copy"), this);
  copy_->setObjectName(QStringLiteral("table_copy"));
  connect(copy_, &QAction::triggered, this, [this] { copy_selection(); });
  export_ = new QAction(tr("Export as CSV …"), this);
  export_->setObjectName(QStringLiteral("table_export"));
  connect(export_, &QAction::triggered, this, &TableView::export_csv);
}

void TableView::setModel(QAbstractItemModel* model) {
  QTableView::setModel(model);
}

QString TableView::csv() const {
  return model() == nullptr ? QString() : csv_of(*model());
}

void TableView::export_csv() {
  save_text_as(this, export_name(), tr("Tables (*.csv)"), csv().toUtf8());
}

void TableView::update_actions() {
  copy_->setEnabled(selectionModel() != nullptr && selectionModel()->hasSelection());
  export_->setEnabled(model() != nullptr && model()->rowCount() > 0);
}

void TableView::set_empty_text(const QString& text) {
  empty_text_ = text;
  viewport()->update();
}

void TableView::paintEvent(QPaintEvent* event) {
  QTableView::paintEvent(event);
  if (empty_text_.isEmpty() || (model() != nullptr && model()->rowCount() > 0)) return;
  QPainter painter(viewport());
  painter.setPen(palette().color(QPalette::PlaceholderText));
  painter.drawText(viewport()->rect().adjusted(side_padding, side_padding, -side_padding, -side_padding),
                   static_cast<int>(Qt::AlignCenter) | Qt::TextWordWrap, empty_text_);
}

void TableView::updateGeometries() {
  stretch_where_it_fits();
  QTableView::updateGeometries();
}

// The last column takes the room that is left. Where that is less than it needs, it keeps its width and the
// table scrolls: Qt would cut it off.
void TableView::stretch_where_it_fits() {
  QHeaderView* head = horizontalHeader();
  const int last = head->logicalIndex(head->count() - 1);
  if (stretching_ || last < 0 || head->sectionResizeMode(last) != QHeaderView::ResizeToContents) return;
  const int needed = std::max(sizeHintForColumn(last), head->sectionSizeHint(last));
  const bool fits = head->sectionPosition(last) + needed <= viewport()->width();
  if (fits == head->stretchLastSection()) return;
  stretching_ = true;  // the header tells the table of its new sizes
  head->setStretchLastSection(fits);
  stretching_ = false;
}

void TableView::contextMenuEvent(QContextMenuEvent* event) {
  update_actions();
  auto* menu = new QMenu(this);
  menu->setAttribute(Qt::WA_DeleteOnClose);
  menu->addAction(copy_);
  menu->addAction(export_);
  menu->popup(event->globalPos());
}

void TableView::copy_selection() {
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
  QStyleOptionViewItem cell = option;
  initStyleOption(&cell, index);
  const QPalette& palette = cell.palette;
  painter->save();
  painter->setClipRect(cell.rect);
  if (cell.state.testFlag(QStyle::State_Selected))
    painter->fillRect(cell.rect, palette.color(QPalette::Highlight));
  else if (cell.state.testFlag(QStyle::State_MouseOver))
    painter->fillRect(cell.rect, palette.color(QPalette::Midlight));
  QRect room = cell.rect.adjusted(side_padding, 0, -side_padding, 0);
  const bool rtl = cell.direction == Qt::RightToLeft;
  if (!cell.icon.isNull()) {
    const QRect at(rtl ? room.right() - icon_side + 1 : room.left(), room.center().y() - icon_side / 2,
                   icon_side, icon_side);
    cell.icon.paint(painter, at, Qt::AlignCenter);
    rtl ? room.setRight(at.left() - side_padding) : room.setLeft(at.right() + side_padding);
  }
  const QVariant colour = index.data(Qt::ForegroundRole);
  painter->setFont(cell.font);
  painter->setPen(colour.isValid() ? colour.value<QBrush>().color() : palette.color(QPalette::Text));
  if (cell.displayAlignment.testFlag(Qt::AlignRight)) {
    draw_tabular(*painter, room, (rtl ? Qt::AlignLeft : Qt::AlignRight) | Qt::AlignVCenter, cell.text);
  } else {
    const QFontMetrics metrics(cell.font);
    // The painter turns left and right itself where the language does.
    painter->drawText(room, static_cast<int>(Qt::AlignVCenter | Qt::AlignLeft | Qt::TextSingleLine),
                      metrics.elidedText(cell.text, cell.textElideMode, room.width()));
  }
  if (cell.state.testFlag(QStyle::State_HasFocus)) {
    painter->setPen(palette.color(QPalette::Link));
    painter->drawRect(cell.rect.adjusted(0, 0, -1, -1));
  }
  painter->restore();
}

QSize TabularDelegate::sizeHint(const QStyleOptionViewItem& option, const QModelIndex& index) const {
  // As paint() lays it out. The style's own hint shapes the text a second time, and columns that fit their
  // contents ask for many cells at every change.
  const qreal text = tabular_width(index.data().toString(), QFontMetricsF(option.font));
  const int icon = index.data(Qt::DecorationRole).isNull() ? 0 : icon_side + side_padding;
  return {static_cast<int>(std::ceil(text)) + icon + 2 * side_padding, row_height};
}

}  // namespace neuroshard::ui
