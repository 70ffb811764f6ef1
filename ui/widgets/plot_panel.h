// A chart in a card, with its controls: log axis, show all, table twin, export as picture or CSV.
#pragma once

#include "ui/widgets/card.h"
#include "ui/widgets/plot_widget.h"

class QStackedLayout;
class QToolButton;

namespace neuroshard::ui {

class PlotTableModel;
class TableView;

class PlotPanel final : public Card {
  Q_OBJECT
 public:
  // `file_name` is suggested for exports, without ending.
  PlotPanel(const Theme& theme, const QString& title, const QString& file_name, QWidget* parent = nullptr);
  PlotWidget* plot() const { return plot_; }
  void set_options(PlotOptions options) { plot_->set_options(std::move(options)); }
  void show_table(bool shown);
  bool table_shown() const;
  QString csv() const;

 private:
  void build_controls();
  void fill_table();

  const Theme& theme_;
  QString file_name_;
  PlotWidget* plot_;
  QStackedLayout* faces_;
  TableView* table_ = nullptr;  // made when first shown
  PlotTableModel* model_;
  QToolButton* log_;
  QToolButton* all_;
  QToolButton* twin_;
  QToolButton* export_;
};

}  // namespace neuroshard::ui
