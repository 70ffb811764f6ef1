// The table twin of a chart: one row for each point of the leading series, the others beside it.
#pragma once

#include <QAbstractTableModel>
#include <vector>

#include "ui/widgets/plot_frame_builder.h"
#include "ui/widgets/plot_series.h"

namespace neuroshard::ui {

class PlotTableModel final : public QAbstractTableModel {
  Q_OBJECT
 public:
  explicit PlotTableModel(QObject* parent = nullptr) : QAbstractTableModel(parent) {}

  // Rows come and go at the end and values change in place: views keep their selection and scroll position.
  // Only a change of the columns builds anew.
  void set_series(const std::vector<PlotSeries>& series, const PlotOptions& options);
  QString csv() const;  // numbers in full, times in UTC

  int rowCount(const QModelIndex& parent = {}) const override;
  int columnCount(const QModelIndex& parent = {}) const override;
  QVariant data(const QModelIndex& index, int role) const override;
  QVariant headerData(int section, Qt::Orientation orientation, int role) const override;

 private:
  struct Column {
    QString name;
    enum class Part { X, Mean, Least, Most } part = Part::Mean;
    bool operator==(const Column&) const = default;
  };
  std::vector<Column> columns_;
  std::vector<std::vector<double>> rows_;  // NaN = no value
  PlotOptions options_;
};

}  // namespace neuroshard::ui
