// The distance of two checkpoints, slot by slot, as a table.
#pragma once

#include <QAbstractTableModel>
#include <vector>

#include "core/node/queries.h"

namespace neuroshard::ui {

// Threads: ui. Filled once.
class ComparisonModel final : public QAbstractTableModel {
  Q_OBJECT
 public:
  enum Column { Slot, Relative, Distance, Cosine, ColumnCount };
  static constexpr int SortRole = Qt::UserRole + 1;

  explicit ComparisonModel(std::vector<node::SlotDistance> slots, QObject* parent = nullptr);

  int rowCount(const QModelIndex& parent = {}) const override;
  int columnCount(const QModelIndex& parent = {}) const override;
  QVariant data(const QModelIndex& index, int role) const override;
  QVariant headerData(int section, Qt::Orientation orientation, int role) const override;

 private:
  std::vector<node::SlotDistance> slots_;
};

// For a chart: one value per layer ("layer 3" with its experts), in the order of the model. The relative
// distance of what belongs together is the norm of the differences over the norm of the weights.
struct LayerDistance {
  std::string name;
  double relative = 0;
};
std::vector<LayerDistance> distance_by_layer(const std::vector<node::SlotDistance>& slots);

}  // namespace neuroshard::ui
