// The checkpoints of a node as a table, newest first. Keeps its rows through updates: what stays is changed
// in place, so that selections and scroll positions survive.
#pragma once

#include <QAbstractTableModel>
#include <vector>

#include "core/node/queries.h"

namespace neuroshard::ui {

// Threads: ui.
class CheckpointModel final : public QAbstractTableModel {
  Q_OBJECT
 public:
  enum Column { Step, Saved, Loss, HeldOut, Size, Checked, Pinned, Hash, ColumnCount };
  enum Role { SortRole = Qt::UserRole + 1, NameRole };

  using QAbstractTableModel::QAbstractTableModel;

  void set_entries(std::vector<node::CheckpointEntry> newest_first);
  // The time from which "3 minutes ago" is counted.
  void set_now(WallTime now);

  const std::vector<node::CheckpointEntry>& entries() const { return entries_; }
  const node::CheckpointEntry& entry(int row) const { return entries_[static_cast<std::size_t>(row)]; }
  int row_of(const QString& name) const;  // -1 = not here
  bool is_newest(int row) const { return entry(row).name == newest_; }

  int rowCount(const QModelIndex& parent = {}) const override;
  int columnCount(const QModelIndex& parent = {}) const override;
  QVariant data(const QModelIndex& index, int role) const override;
  QVariant headerData(int section, Qt::Orientation orientation, int role) const override;

 private:
  QString text(int row, int column) const;
  QString tool_tip(int row, int column) const;
  QVariant sort_value(int row, int column) const;

  std::vector<node::CheckpointEntry> entries_;
  std::string newest_;
  WallTime now_{};
};

// "never", "intact 2 h ago", "damaged".
QString checked_text(const node::CheckpointEntry& entry, WallTime now);

}  // namespace neuroshard::ui
