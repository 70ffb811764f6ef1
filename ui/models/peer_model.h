// The peers that this node talks with, as a table; rows stay through updates.
#pragma once

#include <QAbstractTableModel>
#include <vector>

#include "core/node/network_view.h"

namespace neuroshard::ui {

// Threads: ui.
class PeerModel final : public QAbstractTableModel {
  Q_OBJECT
 public:
  enum Column { Id, State, Latency, Version, Memory, Speed, Way, In, Out, Line, Address, ColumnCount };
  static constexpr int SortRole = Qt::UserRole + 1;

  using QAbstractTableModel::QAbstractTableModel;
  // Peers and, behind them, who is banned and not among them.
  void set_entries(const std::vector<node::PeerEntry>& peers, const std::vector<node::BanEntry>& bans);

  // "↓ 5.82 MiB/s  ↑ 1.14 MiB/s": what a line has carried; a dash for 0, which is not measured.
  static QString line_text(std::uint64_t download, std::uint64_t upload);

  int rowCount(const QModelIndex& parent = {}) const override;
  int columnCount(const QModelIndex& parent = {}) const override;
  QVariant data(const QModelIndex& index, int role) const override;
  QVariant headerData(int section, Qt::Orientation orientation, int role) const override;

 private:
  struct Row {
    node::PeerEntry peer;
    std::optional<node::BanEntry> ban;
  };
  static QString state_of(const Row& row);
  QVariant sort_value(const Row& row, int column) const;

  std::vector<Row> rows_;
};

}  // namespace neuroshard::ui
