// The router's spread of the tokens: load of every expert of every layer, and how even it is.
#pragma once

#include <QTimer>
#include <optional>

#include "ui/pages/page.h"

class QLabel;
class QStandardItemModel;
class QToolButton;

namespace neuroshard::node {
struct ExpertLoad;
}

namespace neuroshard::ui {

class Card;
class CellGrid;
class Fact;
class BarChart;
class TableView;
struct GridContent;

class ExpertsPage final : public Page {
  Q_OBJECT
 public:
  static constexpr std::chrono::milliseconds period{2000};  // between two questions while the page is shown

  explicit ExpertsPage(const Context& context, QWidget* parent = nullptr);
  QString title() const override { return tr("Experts"); }
  QString icon() const override { return QStringLiteral("experts"); }
  void refresh(const node::Snapshot& snapshot) override;
  void shown() override;
  void hidden() override;

 private:
  Card* make_matrix();
  Card* make_spread();
  Card* make_scarcity();
  void ask();
  void show_loads(const std::vector<node::ExpertLoad>& loads);
  void clear_loads();

  CellGrid* matrix_;
  TableView* table_;
  QStandardItemModel* model_;
  QLabel* detail_;
  BarChart* histogram_;
  QToolButton* spread_twin_;
  QStandardItemModel* classes_;
  Fact* balance_;
  Fact* busiest_;
  Fact* quietest_;
  QTimer pause_;
  std::uint64_t step_ = 0;
  std::optional<std::uint64_t> asked_step_;  // nothing: this core was not asked yet
  bool shown_ = false, asking_ = false;
};

// Rows: layers; columns: experts; a cell is the load over an even load, its colour from none to twice the
// even load. Of an expert that this node does not hold, the load is unknown.
GridContent load_matrix(const std::vector<node::ExpertLoad>& loads);
// The number of experts held here, by load: ten classes of 0.2 of an even load, the last one open.
std::vector<double> load_classes(const std::vector<node::ExpertLoad>& loads);

}  // namespace neuroshard::ui
