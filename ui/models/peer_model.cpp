#include "ui/models/peer_model.h"

#include <algorithm>
#include <limits>

#include "ui/text/format.h"

namespace neuroshard::ui {
namespace {

QString way_text(const node::PeerEntry& peer) {
  if (peer.way == "direct") return PeerModel::tr("direct");
  if (peer.way == "relayed") return PeerModel::tr("relayed");
  if (peer.way == "turn") return PeerModel::tr("relayed (TURN)");
  if (peer.way == "punched") return PeerModel::tr("punched");
  return peer.way.empty() ? Format::dash() : QString::fromStdString(peer.way);
}

QString per_second(std::uint64_t bytes) {
  return bytes == 0 ? Format::dash() : PeerModel::tr("%1/s").arg(Format::bytes(bytes));
}

QString or_dash(const std::string& text) {
  return text.empty() ? Format::dash() : QString::fromStdString(text);
}

bool is_number(int column) {
  return column == PeerModel::Latency || column == PeerModel::Memory || column == PeerModel::Speed ||
         column == PeerModel::Line || column == PeerModel::In || column == PeerModel::Out;
}

}  // namespace

void PeerModel::set_entries(const std::vector<node::PeerEntry>& peers,
                            const std::vector<node::BanEntry>& bans) {
  std::vector<Row> next;
  for (const node::PeerEntry& peer : peers) next.push_back({peer, {}});
  for (const node::BanEntry& ban : bans) {
    const auto known =
        std::find_if(next.begin(), next.end(), [&](const Row& row) { return row.peer.id == ban.id; });
    if (known != next.end()) {
      known->ban = ban;
      continue;
    }
    node::PeerEntry stranger;
    stranger.id = ban.id;
    next.push_back({std::move(stranger), ban});
  }
  // By id: whoever stays keeps the row, and with it selection and place.
  std::sort(next.begin(), next.end(), [](const Row& a, const Row& b) { return a.peer.id < b.peer.id; });
  for (std::size_t at = 0; at < rows_.size() || at < next.size();) {
    const bool gone = at >= next.size() || (at < rows_.size() && rows_[at].peer.id < next[at].peer.id);
    const bool added = !gone && (at >= rows_.size() || next[at].peer.id < rows_[at].peer.id);
    const int row = static_cast<int>(at);
    if (gone) {
      beginRemoveRows({}, row, row);
      rows_.erase(rows_.begin() + row);
      endRemoveRows();
      continue;
    }
    if (added) {
      beginInsertRows({}, row, row);
      rows_.insert(rows_.begin() + row, next[at]);
      endInsertRows();
    } else {
      rows_[at] = next[at];
      Q_EMIT dataChanged(index(row, 0), index(row, ColumnCount - 1));
    }
    ++at;
  }
}

int PeerModel::rowCount(const QModelIndex& parent) const {
  return parent.isValid() ? 0 : static_cast<int>(rows_.size());
}
int PeerModel::columnCount(const QModelIndex& parent) const {
  return parent.isValid() ? 0 : ColumnCount;
}

QString PeerModel::line_text(std::uint64_t download, std::uint64_t upload) {
  if (download == 0 && upload == 0) return Format::dash();
  return QStringLiteral("↓ %1  ↑ %2").arg(per_second(download), per_second(upload));
}

QString PeerModel::state_of(const Row& row) {
  if (row.ban) return tr("banned: %1").arg(QString::fromStdString(row.ban->reason));
  if (row.peer.connected) return tr("connected");
  if (!row.peer.problem.empty()) return QString::fromStdString(row.peer.problem);
  return tr("not connected");
}

QVariant PeerModel::sort_value(const Row& row, int column) const {
  switch (column) {
    // Unknown latencies behind all that are known.
    case Latency: return row.peer.round_trip.value_or(std::numeric_limits<double>::infinity());
    case Memory: return QVariant::fromValue<qulonglong>(row.peer.memory_bytes);
    case Speed: return QVariant::fromValue<qulonglong>(row.peer.tokens_per_second);
    case Line: return QVariant::fromValue<qulonglong>(row.peer.upload);
    case In: return QVariant::fromValue<qulonglong>(row.peer.bytes_in);
    case Out: return QVariant::fromValue<qulonglong>(row.peer.bytes_out);
    default: return {};
  }
}

QVariant PeerModel::data(const QModelIndex& at, int role) const {
  if (!at.isValid()) return {};
  const Row& row = rows_[static_cast<std::size_t>(at.row())];
  const node::PeerEntry& peer = row.peer;
  if (role == Qt::TextAlignmentRole && is_number(at.column()))
    return QVariant(Qt::AlignRight | Qt::AlignVCenter);
  if (role == Qt::ToolTipRole && at.column() == Id) return QString::fromStdString(peer.id);
  if (role == Qt::ToolTipRole && at.column() == Line)
    return tr("Measured bandwidth, as the peer reports it: download %1, upload %2")
        .arg(per_second(peer.download), per_second(peer.upload));
  if (role == Qt::ToolTipRole && at.column() == State && row.ban)
    return tr("until %1").arg(Format::date_time(row.ban->until));
  if (role == SortRole)
    return is_number(at.column()) ? sort_value(row, at.column()) : data(at, Qt::DisplayRole);
  if (role != Qt::DisplayRole) return {};
  switch (at.column()) {
    case Id: return QString::fromStdString(peer.id).left(12);
    case State: return state_of(row);
    case Latency: return peer.round_trip ? Format::seconds(*peer.round_trip) : Format::dash();
    case Version: return or_dash(peer.version);
    case Memory: return peer.memory_bytes == 0 ? Format::dash() : Format::bytes(peer.memory_bytes);
    case Speed: return peer.tokens_per_second == 0 ? Format::dash() : Format::rate(peer.tokens_per_second);
    case Line: return line_text(peer.download, peer.upload);
    case Way: return way_text(peer);
    case In: return Format::bytes(peer.bytes_in);
    case Out: return Format::bytes(peer.bytes_out);
    case Address: return or_dash(peer.address);
    default: return {};
  }
}

QVariant PeerModel::headerData(int section, Qt::Orientation orientation, int role) const {
  if (orientation == Qt::Horizontal && role == Qt::TextAlignmentRole && is_number(section))
    return QVariant(Qt::AlignRight | Qt::AlignVCenter);
  if (orientation != Qt::Horizontal || role != Qt::DisplayRole) return {};
  switch (section) {
    case Id: return tr("Node");
    case State: return tr("State");
    case Latency: return tr("Latency");
    case Version: return tr("Version");
    case Memory: return tr("Memory");
    case Speed: return tr("Speed");
    case Line: return tr("Bandwidth");
    case Way: return tr("Path");
    case In: return tr("Received");
    case Out: return tr("Sent");
    case Address: return tr("Address");
    default: return {};
  }
}

}  // namespace neuroshard::ui
