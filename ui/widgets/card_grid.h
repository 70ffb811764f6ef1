// Cards beside each other in as many columns as fit; below one another where it is narrow. The last one of a
// row takes the room that is left in it.
#pragma once

#include <QWidget>
#include <vector>

class QGridLayout;

namespace neuroshard::ui {

class CardGrid final : public QWidget {
  Q_OBJECT
 public:
  static constexpr int max_columns = 3;

  // A column is at least `column_width` pixels wide.
  explicit CardGrid(int column_width, QWidget* parent = nullptr, int most_columns = max_columns);
  // In reading order; span: columns that it takes where there are so many.
  void add(QWidget* card, int span = 1);
  int columns() const { return columns_; }
  QSize minimumSizeHint() const override;

 protected:
  void resizeEvent(QResizeEvent* event) override;

 private:
  void arrange();

  struct Item {
    QWidget* card;
    int span;
  };
  std::vector<Item> items_;
  QGridLayout* grid_;
  int column_width_, most_columns_;
  int columns_ = 0;
};

}  // namespace neuroshard::ui
