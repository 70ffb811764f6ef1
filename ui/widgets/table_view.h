// The common look and behaviour of all tables: whole rows, sortable where the model can, copy with Ctrl+C,
// export as CSV from its menu, no grid, numbers aligned to the right in digits of one width.
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
  virtual void copy_selection();
  // All rows, in the order in which they are shown.
  QString csv() const;
  // Suggested for exports, without ending; "table" at first.
  void set_file_name(const QString& name) { file_name_ = name; }
  void set_empty_text(const QString& text);  // shown in place of rows
  QAction* copy_action() const { return copy_; }
  QAction* export_action() const { return export_; }

  void update_actions();  // before a menu with them is shown

 protected:
  void keyPressEvent(QKeyEvent* event) override;
  // Asks for a file name and writes csv(). A table of very many rows does it in pieces.
  virtual void export_csv();
  QString export_name() const { return file_name_ + QStringLiteral(".csv"); }
  // Copy and export; a table with a menu of its own puts the two actions into it.
  void contextMenuEvent(QContextMenuEvent* event) override;
  void paintEvent(QPaintEvent* event) override;
  void updateGeometries() override;

 private:
  void stretch_where_it_fits();

  QString file_name_ = QStringLiteral("table"), empty_text_;
  QAction* copy_;
  QAction* export_;
  bool stretching_ = false;
};

// Draws cells: those aligned to the right in digits of one width. All by itself, so that a selected cell
// looks as before but for its ground.
class TabularDelegate final : public QStyledItemDelegate {
  Q_OBJECT
 public:
  using QStyledItemDelegate::QStyledItemDelegate;
  void paint(QPainter* painter, const QStyleOptionViewItem& option, const QModelIndex& index) const override;
  QSize sizeHint(const QStyleOptionViewItem& option, const QModelIndex& index) const override;
};

}  // namespace neuroshard::ui
