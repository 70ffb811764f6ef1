// The shards of the training text as a table; rows stay through updates.
#pragma once

#include <QAbstractTableModel>
#include <vector>

#include "core/node/queries.h"

namespace neuroshard::ui {

// Threads: ui.
class ShardModel final : public QAbstractTableModel {
  Q_OBJECT
 public:
  enum Column { Number, Name, State, Tokens, Size, Hash, ColumnCount };
  static constexpr int SortRole = Qt::UserRole + 1;

  using QAbstractTableModel::QAbstractTableModel;
  void set_entries(std::vector<node::ShardEntry> entries);
  const node::ShardEntry& entry(int row) const { return entries_[static_cast<std::size_t>(row)]; }

  int rowCount(const QModelIndex& parent = {}) const override;
  int columnCount(const QModelIndex& parent = {}) const override;
  QVariant data(const QModelIndex& index, int role) const override;
  QVariant headerData(int section, Qt::Orientation orientation, int role) const override;

 private:
  std::vector<node::ShardEntry> entries_;
};

}  // namespace neuroshard::ui
