// A matrix of cells with a number each, coloured by a share (a heat map) or outlined (a map of who has what).
// Every cell can be reached with the arrow keys and is read out; the owner gives a table twin beside it.
#pragma once

#include <QStringList>
#include <QWidget>
#include <vector>

namespace neuroshard::ui {

class Theme;

struct GridCell {
  QString text;         // short: it must fit into a cell
  QString description;  // whole, for the tooltip and screen readers; empty = there is no cell here
  double heat = -1;     // 0 … 1; negative = no colour
  bool outlined = false;
  bool operator==(const GridCell&) const = default;
};

struct GridContent {
  QStringList rows, columns;    // titles
  std::vector<GridCell> cells;  // by row
  bool operator==(const GridContent&) const = default;
};

class CellGrid final : public QWidget {
  Q_OBJECT
 public:
  CellGrid(const Theme& theme, const QString& accessible_name, QWidget* parent = nullptr);
  void set_content(GridContent content);
  const GridContent& content() const { return content_; }
  // Of the cell under the cursor; -1, -1 = none.
  int current_row() const { return row_; }
  int current_column() const { return column_; }
  QRectF cell_rect(int row, int column) const;
  int frames() const { return frames_; }

  QSize sizeHint() const override;
  QSize minimumSizeHint() const override;

 Q_SIGNALS:
  // Another cell, or another content of the same one; -1, -1 = none any more.
  void current_changed(int row, int column);

 protected:
  void paintEvent(QPaintEvent* event) override;
  void keyPressEvent(QKeyEvent* event) override;
  void mousePressEvent(QMouseEvent* event) override;
  void focusInEvent(QFocusEvent* event) override;
  void changeEvent(QEvent* event) override;
  bool event(QEvent* event) override;

 private:
  const GridCell* cell(int row, int column) const;
  void set_current(int row, int column);
  void move(int rows, int columns);
  double title_width() const;
  double cell_width() const;

  const Theme& theme_;
  GridContent content_;
  mutable double title_width_ = 0;  // asked for by every cell; 0 = to be measured
  int row_ = -1, column_ = -1, frames_ = 0;
};

}  // namespace neuroshard::ui
