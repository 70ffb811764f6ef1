// The output of `neuroshardd partition --json --layout`, as values.
#pragma once

#include <QByteArray>
#include <QJsonObject>
#include <QPointF>
#include <QRectF>
#include <QSizeF>
#include <QString>
#include <optional>
#include <utility>
#include <vector>

namespace neuroshard::ui {

struct PartitionBlock {
  QString peer, first_node;
  double cost = 0, in = 0, work = 0, overflow = 0, out = 0;  // in the report's unit
  double param_bytes = 0, peak_bytes = 0;
  qsizetype nodes = 0;
};

// A box of the picture: a node, or a whole block where there are too many nodes.
struct PartitionBox {
  QString id, op;
  int block = 0, row = 0;
  QPointF centre;
  double work = 0, param_bytes = 0, output_bytes = 0;
};

struct PartitionLayout {
  QSizeF size, box;
  std::vector<QRectF> columns;  // by block
  std::vector<PartitionBox> boxes;
  std::vector<std::pair<int, int>> edges;  // producer, consumer
  bool contracted = false;
};

struct PartitionReport {
  double bottleneck = 0, lower_bound = 0, gap = 0, per_second = 0, seconds = 0;
  bool proved = false, interrupted = false;
  QString certificate, unit, convention;
  qsizetype nodes = 0, edges = 0;
  std::vector<PartitionBlock> blocks;
  PartitionLayout layout;
};

// Nothing where the texts are not what the program writes.
std::optional<PartitionReport> parse_partition(const QByteArray& report, const QByteArray& layout);

}  // namespace neuroshard::ui
