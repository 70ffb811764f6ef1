// A table as all of ours look and behave: whole rows, sortable where the model can, copy with Ctrl+C, no
// grid, numbers aligned to the right in digits of one width.
#pragma once

#include <QStyledItemDelegate>
#include <QTableView>

namespace neuroshard::ui {

class TableView : public QTableView {
  Q_OBJECT
 public:
  explicit TableView(const QString& accessible_name, QWidget* parent = nullptr);
  void setModel(QAbstractItemModel* model) override;
  // Selected rows, tab-separated with headings.
  void copy_selection() const;

 protected:
  void keyPressEvent(QKeyEvent* event) override;
};

// Draws cells that are aligned to the right in digits of one width.
class TabularDelegate final : public QStyledItemDelegate {
  Q_OBJECT
 public:
  using QStyledItemDelegate::QStyledItemDelegate;
  void paint(QPainter* painter, const QStyleOptionViewItem& option, const QModelIndex& index) const override;
  QSize sizeHint(const QStyleOptionViewItem& option, const QModelIndex& index) const override;
};

}  // namespace neuroshard::ui
