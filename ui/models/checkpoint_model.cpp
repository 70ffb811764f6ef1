#include "ui/models/checkpoint_model.h"

#include <QSet>

#include "ui/text/format.h"

namespace neuroshard::ui {
namespace {

QString from(const std::string& text) {
  return QString::fromStdString(text);
}

bool same(const node::CheckpointEntry& a, const node::CheckpointEntry& b) {
  return a.name == b.name && a.step == b.step && a.at == b.at && a.bytes == b.bytes && a.loss == b.loss &&
         a.held_out_loss == b.held_out_loss && a.pinned == b.pinned && a.complete == b.complete &&
         a.hash == b.hash && a.verified_at == b.verified_at && a.intact == b.intact && a.parent == b.parent;
}

}  // namespace

QString checked_text(const node::CheckpointEntry& entry, WallTime now) {
  if (!entry.complete) return CheckpointModel::tr("incomplete");
  if (!entry.intact) return CheckpointModel::tr("not checked");
  if (!*entry.intact) return CheckpointModel::tr("damaged");
  return entry.verified_at ? CheckpointModel::tr("intact, %1").arg(Format::ago(*entry.verified_at, now))
                           : CheckpointModel::tr("intact");
}

void CheckpointModel::set_entries(std::vector<node::CheckpointEntry> next) {
  QSet<QString> names;
  for (const auto& entry : next) names.insert(from(entry.name));
  for (int row = rowCount() - 1; row >= 0; --row) {
    if (names.contains(from(entry(row).name))) continue;
    beginRemoveRows({}, row, row);
    entries_.erase(entries_.begin() + row);
    endRemoveRows();
  }
  for (int row = 0; row < static_cast<int>(next.size()); ++row) {
    node::CheckpointEntry& wanted = next[static_cast<std::size_t>(row)];
    if (row < rowCount() && entry(row).name == wanted.name) {
      if (same(entry(row), wanted)) continue;
      entries_[static_cast<std::size_t>(row)] = std::move(wanted);
      Q_EMIT dataChanged(index(row, 0), index(row, ColumnCount - 1));
      continue;
    }
    // Newest first does not change between two lists; where it did all the same, the row is moved by hand.
    if (const int old = row_of(from(wanted.name)); old >= 0) {
      beginRemoveRows({}, old, old);
      entries_.erase(entries_.begin() + old);
      endRemoveRows();
    }
    beginInsertRows({}, row, row);
    entries_.insert(entries_.begin() + row, std::move(wanted));
    endInsertRows();
  }
  // Only now: a row must not change its text while others are inserted or removed.
  const std::string newest = entries_.empty() ? std::string() : entries_.front().name;
  if (newest == newest_) return;
  const int before = row_of(from(newest_));
  newest_ = newest;
  for (const int row : {before, 0})
    if (row >= 0 && row < rowCount()) Q_EMIT dataChanged(index(row, Step), index(row, Step));
}

void CheckpointModel::set_now(WallTime now) {
  now_ = now;
  if (rowCount() == 0) return;
  Q_EMIT dataChanged(index(0, Saved), index(rowCount() - 1, Saved), {Qt::DisplayRole});
  Q_EMIT dataChanged(index(0, Checked), index(rowCount() - 1, Checked), {Qt::DisplayRole});
}

int CheckpointModel::row_of(const QString& name) const {
  const std::string wanted = name.toStdString();
  for (std::size_t i = 0; i < entries_.size(); ++i)
    if (entries_[i].name == wanted) return static_cast<int>(i);
  return -1;
}

int CheckpointModel::rowCount(const QModelIndex& parent) const {
  return parent.isValid() ? 0 : static_cast<int>(entries_.size());
}
int CheckpointModel::columnCount(const QModelIndex& parent) const {
  return parent.isValid() ? 0 : ColumnCount;
}

QVariant CheckpointModel::data(const QModelIndex& at, int role) const {
  if (!at.isValid()) return {};
  switch (role) {
    case Qt::DisplayRole: return text(at.row(), at.column());
    case Qt::ToolTipRole: return tool_tip(at.row(), at.column());
    case SortRole: return sort_value(at.row(), at.column());
    case NameRole: return from(entry(at.row()).name);
    case Qt::TextAlignmentRole:
      return QVariant(at.column() <= Size && at.column() != Saved ? Qt::AlignRight | Qt::AlignVCenter
                                                                  : Qt::AlignLeft | Qt::AlignVCenter);
    default: return {};
  }
}

QString CheckpointModel::text(int row, int column) const {
  const node::CheckpointEntry& e = entry(row);
  switch (column) {
    case Step:
      return is_newest(row) ? tr("%1 (newest)").arg(Format::integer(e.step)) : Format::integer(e.step);
    case Saved: return Format::ago(e.at, now_);
    case Loss: return Format::loss(e.loss);
    case HeldOut: return Format::loss(e.held_out_loss);
    case Size: return Format::bytes(e.bytes);
    case Checked: return checked_text(e, now_);
    case Pinned: return e.pinned ? tr("pinned") : QString();
    case Hash: return e.hash.empty() ? Format::dash() : from(e.hash).left(12);
    default: return {};
  }
}

QString CheckpointModel::tool_tip(int row, int column) const {
  const node::CheckpointEntry& e = entry(row);
  switch (column) {
    case Saved: return Format::date_time(e.at);
    case Size: return tr("%1 bytes").arg(Format::integer(e.bytes));
    case Checked: return e.verified_at ? Format::date_time(*e.verified_at) : QString();
    case Hash: return from(e.hash);
    default: return from(e.name);
  }
}

QVariant CheckpointModel::sort_value(int row, int column) const {
  const node::CheckpointEntry& e = entry(row);
  // An unknown value sorts behind every other.
  constexpr double unknown = 1e300;
  switch (column) {
    case Step: return QVariant::fromValue<qulonglong>(e.step);
    case Saved: return QVariant::fromValue<qlonglong>(to_unix_ms(e.at));
    case Loss: return e.loss.value_or(unknown);
    case HeldOut: return e.held_out_loss.value_or(unknown);
    case Size: return QVariant::fromValue<qulonglong>(e.bytes);
    case Checked:
      return e.verified_at ? QVariant::fromValue<qlonglong>(to_unix_ms(*e.verified_at)) : QVariant(0);
    case Pinned: return e.pinned ? 1 : 0;
    case Hash: return from(e.hash);
    default: return {};
  }
}

QVariant CheckpointModel::headerData(int section, Qt::Orientation orientation, int role) const {
  if (orientation != Qt::Horizontal) return {};
  if (role == Qt::TextAlignmentRole)
    return QVariant(section <= Size && section != Saved ? Qt::AlignRight | Qt::AlignVCenter
                                                        : Qt::AlignLeft | Qt::AlignVCenter);
  if (role != Qt::DisplayRole) return {};
  switch (section) {
    case Step: return tr("Step");
    case Saved: return tr("Saved");
    case Loss: return tr("Loss");
    case HeldOut: return tr("Held-out loss");
    case Size: return tr("Size");
    case Checked: return tr("Checked");
    case Pinned: return tr("Pinned");
    case Hash: return tr("Hash");
    default: return {};
  }
}

}  // namespace neuroshard::ui
