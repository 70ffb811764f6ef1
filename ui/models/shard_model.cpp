#include "ui/models/shard_model.h"

#include "ui/text/format.h"

namespace neuroshard::ui {
namespace {

QString state_text(const node::ShardEntry& entry) {
  QString state;
  if (entry.state == "cached")
    state = ShardModel::tr("cached");
  else if (entry.state == "missing")
    state = ShardModel::tr("missing");
  else
    state = QString::fromStdString(entry.state);
  return entry.in_use ? ShardModel::tr("%1, being read").arg(state) : state;
}

bool same(const node::ShardEntry& a, const node::ShardEntry& b) {
  return a.index == b.index && a.name == b.name && a.state == b.state && a.tokens == b.tokens &&
         a.bytes == b.bytes && a.in_use == b.in_use && a.hash == b.hash;
}

}  // namespace

void ShardModel::set_entries(std::vector<node::ShardEntry> next) {
  // Shards are a list by number: what is new is at the end.
  const int common = static_cast<int>(std::min(entries_.size(), next.size()));
  for (int row = 0; row < common; ++row) {
    node::ShardEntry& wanted = next[static_cast<std::size_t>(row)];
    if (same(entry(row), wanted)) continue;
    entries_[static_cast<std::size_t>(row)] = std::move(wanted);
    Q_EMIT dataChanged(index(row, 0), index(row, ColumnCount - 1));
  }
  if (rowCount() > common) {
    beginRemoveRows({}, common, rowCount() - 1);
    entries_.resize(static_cast<std::size_t>(common));
    endRemoveRows();
  } else if (static_cast<int>(next.size()) > common) {
    beginInsertRows({}, common, static_cast<int>(next.size()) - 1);
    entries_.insert(entries_.end(), std::make_move_iterator(next.begin() + common),
                    std::make_move_iterator(next.end()));
    endInsertRows();
  }
}

int ShardModel::rowCount(const QModelIndex& parent) const {
  return parent.isValid() ? 0 : static_cast<int>(entries_.size());
}
int ShardModel::columnCount(const QModelIndex& parent) const {
  return parent.isValid() ? 0 : ColumnCount;
}

QVariant ShardModel::data(const QModelIndex& at, int role) const {
  if (!at.isValid()) return {};
  const node::ShardEntry& e = entry(at.row());
  const bool number = at.column() == Number || at.column() == Tokens || at.column() == Size;
  if (role == Qt::TextAlignmentRole && number) return QVariant(Qt::AlignRight | Qt::AlignVCenter);
  if (role == Qt::ToolTipRole && at.column() == Hash) return QString::fromStdString(e.hash);
  if (role == SortRole) {
    switch (at.column()) {
      case Number: return QVariant::fromValue<qulonglong>(e.index);
      case Tokens: return QVariant::fromValue<qulonglong>(e.tokens);
      case Size: return QVariant::fromValue<qulonglong>(e.bytes);
      default: return data(at, Qt::DisplayRole);
    }
  }
  if (role != Qt::DisplayRole) return {};
  switch (at.column()) {
    case Number: return Format::integer(e.index % node::first_own_shard);
    case Name: return QString::fromStdString(e.name);
    case State: return state_text(e);
    case Tokens: return e.tokens == 0 ? Format::dash() : Format::integer(e.tokens);
    case Size: return e.bytes == 0 ? Format::dash() : Format::bytes(e.bytes);
    case Hash: return e.hash.empty() ? Format::dash() : QString::fromStdString(e.hash).left(12);
    default: return {};
  }
}

QVariant ShardModel::headerData(int section, Qt::Orientation orientation, int role) const {
  if (orientation == Qt::Horizontal && role == Qt::TextAlignmentRole &&
      (section == Number || section == Tokens || section == Size))
    return QVariant(Qt::AlignRight | Qt::AlignVCenter);
  if (orientation != Qt::Horizontal || role != Qt::DisplayRole) return {};
  switch (section) {
    case Number: return tr("No.");
    case Name: return tr("Name");
    case State: return tr("State");
    case Tokens: return tr("Tokens");
    case Size: return tr("Size");
    case Hash: return tr("Hash");
    default: return {};
  }
}

}  // namespace neuroshard::ui
