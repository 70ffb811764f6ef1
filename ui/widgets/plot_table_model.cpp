#include "ui/widgets/plot_table_model.h"

#include <QDateTime>
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "ui/text/format.h"
#include "ui/widgets/csv.h"

namespace neuroshard::ui {
namespace {

QString heading(PlotX meaning) {
  if (meaning == PlotX::Time) return PlotTableModel::tr("Time");
  return meaning == PlotX::Round ? PlotTableModel::tr("Round") : PlotTableModel::tr("Step");
}

QDateTime time_of(double value) {
  return QDateTime::fromSecsSinceEpoch(static_cast<qint64>(std::llround(value)));
}

}  // namespace

void PlotTableModel::set_series(const std::vector<PlotSeries>& series, const PlotOptions& options) {
  options_ = options;
  std::vector<Column> columns = {{heading(options.x), Column::Part::X}};
  for (const PlotSeries& one : series) {
    columns.push_back({one.name, Column::Part::Mean});
    if (!one.band) continue;
    columns.push_back({tr("%1, least").arg(one.name), Column::Part::Least});
    columns.push_back({tr("%1, most").arg(one.name), Column::Part::Most});
  }
  std::map<double, std::vector<double>> by_step;
  std::size_t column = 1;
  for (const PlotSeries& one : series) {
    for (const PlotPoint& point : one.points) {
      auto& row = by_step[point.x];
      row.resize(columns.size(), std::numeric_limits<double>::quiet_NaN());
      row[0] = point.x;
      row[column] = point.mean;
      if (one.band) {
        row[column + 1] = point.least;
        row[column + 2] = point.most;
      }
    }
    column += one.band ? 3 : 1;
  }
  std::vector<std::vector<double>> rows;
  rows.reserve(by_step.size());
  for (auto& [step, row] : by_step) rows.push_back(std::move(row));
  if (columns != columns_) {
    beginResetModel();
    columns_ = std::move(columns);
    rows_ = std::move(rows);
    endResetModel();
    return;
  }
  const int before = static_cast<int>(rows_.size()), after = static_cast<int>(rows.size());
  if (after > before) {
    beginInsertRows({}, before, after - 1);
    rows_ = std::move(rows);
    endInsertRows();
  } else if (after < before) {
    beginRemoveRows({}, after, before - 1);
    rows_ = std::move(rows);
    endRemoveRows();
  } else {
    rows_ = std::move(rows);
  }
  const int common = std::min(before, after);
  if (common > 0) Q_EMIT dataChanged(index(0, 0), index(common - 1, columnCount() - 1));
}

QString PlotTableModel::csv() const {
  QStringList line;
  for (const Column& column : columns_) line << column.name;
  QString text = csv_line(line);
  for (const auto& row : rows_) {
    line.clear();
    for (const double value : row) line << csv_number(value);
    if (options_.x == PlotX::Time) line[0] = time_of(row[0]).toUTC().toString(Qt::ISODate);
    text += csv_line(line);
  }
  return text;
}

int PlotTableModel::rowCount(const QModelIndex& parent) const {
  return parent.isValid() ? 0 : static_cast<int>(rows_.size());
}

int PlotTableModel::columnCount(const QModelIndex& parent) const {
  return parent.isValid() ? 0 : static_cast<int>(columns_.size());
}

QVariant PlotTableModel::data(const QModelIndex& index, int role) const {
  if (!index.isValid()) return {};
  if (role == Qt::TextAlignmentRole) return static_cast<int>(Qt::AlignRight | Qt::AlignVCenter);
  if (role != Qt::DisplayRole) return {};
  const double value = rows_[static_cast<std::size_t>(index.row())][static_cast<std::size_t>(index.column())];
  if (std::isnan(value)) return QString();
  if (index.column() == 0 && options_.x == PlotX::Time)
    return time_of(value).toString(QStringLiteral("yyyy-MM-dd HH:mm:ss"));
  if (index.column() == 0) return Format::integer(static_cast<std::uint64_t>(std::llround(value)));
  return options_.format_y ? options_.format_y(value) : csv_number(value);
}

QVariant PlotTableModel::headerData(int section, Qt::Orientation orientation, int role) const {
  if (orientation != Qt::Horizontal) return {};
  if (role == Qt::TextAlignmentRole) return static_cast<int>(Qt::AlignRight | Qt::AlignVCenter);
  if (role != Qt::DisplayRole || section >= static_cast<int>(columns_.size())) return {};
  return columns_[static_cast<std::size_t>(section)].name;
}

}  // namespace neuroshard::ui
