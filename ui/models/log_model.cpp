#include "ui/models/log_model.h"

#include <QDateTime>
#include <algorithm>

#include "ui/text/format.h"

namespace neuroshard::ui {
namespace {

QDateTime local(WallTime at) {
  return QDateTime::fromMSecsSinceEpoch(to_unix_ms(at));
}

}  // namespace

QString level_word(LogLevel level) {
  switch (level) {
    case LogLevel::Debug: return LogModel::tr("debug");
    case LogLevel::Info: return LogModel::tr("info");
    case LogLevel::Warning: return LogModel::tr("warning");
    case LogLevel::Error: break;
  }
  return LogModel::tr("error");
}

LogModel::LogModel(QObject* parent) : QAbstractTableModel(parent) {
  filter_timer_.setInterval(0);
  connect(&filter_timer_, &QTimer::timeout, this, &LogModel::filter_slice);
}

void LogModel::append(const std::vector<node::LogEntry>& entries, quint64 dropped) {
  if (dropped > 0) {
    dropped_ += dropped;
    LogLine gap;
    gap.level = LogLevel::Warning;
    gap.at = entries.empty() ? WallTime{} : entries.front().at;
    gap.message =
        tr("The core did not keep %1 line(s).", nullptr, dropped == 1 ? 1 : 2).arg(Format::integer(dropped));
    lines_.push_back(std::move(gap));
  }
  for (const node::LogEntry& entry : entries) {
    LogLine line;
    line.sequence = entry.sequence;
    line.at = entry.at;
    line.level = entry.record.level;
    line.message = QString::fromStdString(entry.record.message);
    const QString category = QString::fromStdString(entry.record.category);
    auto known = categories_.constFind(category);
    if (known == categories_.constEnd()) {
      known = categories_.insert(category);
      Q_EMIT category_seen(category);
    }
    line.category = *known;
    lines_.push_back(std::move(line));
  }
  // While a filter is being applied, its slices come to these lines too.
  if (!filter_timer_.isActive()) show_from(next_unfiltered_, lines_.end());
  trim();
}

void LogModel::clear() {
  const bool any = !shown_.empty();
  if (any) beginRemoveRows({}, 0, rowCount() - 1);
  lines_.drop_before(lines_.end());
  next_unfiltered_ = lines_.end();
  shown_.clear();
  if (any) endRemoveRows();
  dropped_ = 0;
  filter_timer_.stop();
}

void LogModel::set_filter(const LogFilter& filter) {
  filter_ = filter;
  if (!shown_.empty()) {
    beginRemoveRows({}, 0, rowCount() - 1);
    shown_.clear();
    endRemoveRows();
  }
  next_unfiltered_ = lines_.begin();
  if (filtering()) filter_timer_.start();
}

void LogModel::filter_slice() {
  show_from(next_unfiltered_, std::min(lines_.end(), next_unfiltered_ + slice));
  if (!filtering()) filter_timer_.stop();
}

void LogModel::show_from(quint64 from, quint64 to) {
  std::vector<quint64> found;
  for (quint64 i = from; i < to; ++i)
    if (passes(lines_[i])) found.push_back(i);
  next_unfiltered_ = to;
  if (found.empty()) return;
  beginInsertRows({}, rowCount(), rowCount() + static_cast<int>(found.size()) - 1);
  shown_.insert(shown_.end(), found.begin(), found.end());
  endInsertRows();
}

bool LogModel::passes(const LogLine& line) const {
  if (line.level < filter_.least) return false;
  if (line.sequence == 0) return true;  // a gap concerns every category
  if (!filter_.category.isEmpty() && line.category != filter_.category) return false;
  return filter_.expression.pattern().isEmpty() || filter_.expression.match(line.message).hasMatch();
}

void LogModel::trim() {
  if (lines_.size() <= static_cast<std::size_t>(max_lines)) return;
  const quint64 kept_from = lines_.end() - max_lines;
  const auto gone = std::lower_bound(shown_.begin(), shown_.end(), kept_from) - shown_.begin();
  if (gone > 0) {
    beginRemoveRows({}, 0, static_cast<int>(gone) - 1);
    shown_.erase(shown_.begin(), shown_.begin() + gone);
    endRemoveRows();
  }
  lines_.drop_before(kept_from);
  next_unfiltered_ = std::max(next_unfiltered_, kept_from);
}

const LogLine& LogModel::line(int row) const {
  return lines_[shown_[static_cast<std::size_t>(row)]];
}

LogExcerpt LogModel::shown_lines(const std::vector<std::pair<int, int>>& ranges) const {
  LogExcerpt excerpt{lines_, {}};
  for (const auto& [first, last] : ranges)
    excerpt.numbers.insert(excerpt.numbers.end(), shown_.begin() + first, shown_.begin() + last + 1);
  return excerpt;
}

QString LogModel::text(const LogLine& l) {
  return QStringLiteral("%1  %2  %3  %4")
      .arg(local(l.at).toString(QStringLiteral("yyyy-MM-dd HH:mm:ss.zzz")), level_word(l.level), l.category,
           l.message);
}

int LogModel::rowCount(const QModelIndex& parent) const {
  return parent.isValid() ? 0 : static_cast<int>(shown_.size());
}
int LogModel::columnCount(const QModelIndex& parent) const {
  return parent.isValid() ? 0 : ColumnCount;
}

QVariant LogModel::data(const QModelIndex& at, int role) const {
  if (!at.isValid()) return {};
  if (role == Qt::ToolTipRole && at.column() == Message) return line(at.row()).message;
  if (role != Qt::DisplayRole) return {};
  return cell(line(at.row()), at.column());
}

QString LogModel::cell(const LogLine& l, int column) {
  switch (column) {
    case Time: return local(l.at).toString(QStringLiteral("HH:mm:ss.zzz"));
    case Level: return level_word(l.level);
    case Category: return l.category;
    case Message: return l.message;
    default: return {};
  }
}

QVariant LogModel::headerData(int section, Qt::Orientation orientation, int role) const {
  if (orientation != Qt::Horizontal || role != Qt::DisplayRole) return {};
  switch (section) {
    case Time: return tr("Time");
    case Level: return tr("Level");
    case Category: return tr("Category");
    case Message: return tr("Message");
    default: return {};
  }
}

}  // namespace neuroshard::ui
