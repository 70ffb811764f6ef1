#include "ui/pages/partition_report.h"

#include <QJsonArray>
#include <QJsonDocument>
#include <cmath>

namespace neuroshard::ui {
namespace {

std::optional<QJsonObject> object_of(const QByteArray& text) {
  const QJsonDocument document = QJsonDocument::fromJson(text);
  if (!document.isObject()) return {};
  return document.object();
}

PartitionBlock block_of(const QJsonObject& from) {
  PartitionBlock block;
  const QJsonArray nodes = from["nodes"].toArray();
  block.peer = from["peer"].toString();
  block.first_node = nodes.isEmpty() ? QString() : nodes[0].toString();
  block.nodes = nodes.size();
  block.cost = from["cost"].toDouble();
  block.in = from["in"].toDouble();
  block.work = from["work"].toDouble();
  block.overflow = from["overflow"].toDouble();
  block.out = from["out"].toDouble();
  block.param_bytes = from["param_bytes"].toDouble();
  block.peak_bytes = from["peak_bytes"].toDouble();
  return block;
}

bool read_layout(const QJsonObject& from, std::size_t blocks, PartitionLayout* layout) {
  layout->size = {from["width"].toDouble(), from["height"].toDouble()};
  const QJsonArray box = from["box"].toArray(), columns = from["columns"].toArray();
  layout->box = {box.at(0).toDouble(), box.at(1).toDouble()};
  layout->contracted = from["contracted"].toBool();
  const double top = from["top"].toDouble();
  for (const QJsonValue& value : columns) {
    const QJsonObject column = value.toObject();
    layout->columns.emplace_back(column["left"].toDouble(), top, column["width"].toDouble(),
                                 column["bottom"].toDouble() - top);
  }
  const QJsonArray nodes = from["nodes"].toArray();
  for (const QJsonValue& value : nodes) {
    const QJsonObject node = value.toObject();
    PartitionBox entry;
    entry.id = node["id"].toString();
    entry.op = node["op"].toString();
    entry.block = node["block"].toInt(-1);
    entry.row = node["row"].toInt();
    entry.centre = {node["x"].toDouble(), node["y"].toDouble()};
    entry.work = node["work"].toDouble();
    entry.param_bytes = node["param_bytes"].toDouble();
    entry.output_bytes = node["output_bytes"].toDouble();
    if (entry.block < 0 || static_cast<std::size_t>(entry.block) >= blocks) return false;
    layout->boxes.push_back(std::move(entry));
  }
  const QJsonArray edges = from["edges"].toArray();
  for (const QJsonValue& value : edges) {
    const std::pair<int, int> edge{value[0].toInt(-1), value[1].toInt(-1)};
    for (const int end : {edge.first, edge.second})
      if (end < 0 || end >= nodes.size()) return false;
    layout->edges.push_back(edge);
  }
  return layout->columns.size() == blocks && layout->size.isValid();
}

}  // namespace

std::optional<PartitionReport> parse_partition(const QByteArray& report, const QByteArray& layout) {
  const auto object = object_of(report), picture = object_of(layout);
  if (!object || !picture || !(*object)["blocks"].isArray() || !(*object)["bottleneck"].isDouble()) return {};
  PartitionReport result;
  result.bottleneck = (*object)["bottleneck"].toDouble();
  result.lower_bound = (*object)["lower_bound"].toDouble();
  result.gap = (*object)["gap"].toDouble(INFINITY);  // infinite is null in JSON
  result.per_second = (*object)["per_second"].toDouble(INFINITY);
  result.seconds = (*object)["seconds"].toDouble();
  result.proved = (*object)["proved"].toBool();
  result.interrupted = (*object)["interrupted"].toBool();
  result.certificate = (*object)["certificate"].toString();
  result.unit = (*object)["unit"].toString();
  result.convention = (*object)["convention"].toString();
  result.nodes = (*object)["nodes"].toInteger();
  result.edges = (*object)["edges"].toInteger();
  const QJsonArray blocks = (*object)["blocks"].toArray();
  for (const QJsonValue& block : blocks) result.blocks.push_back(block_of(block.toObject()));
  if (result.blocks.empty() || !read_layout(*picture, result.blocks.size(), &result.layout)) return {};
  return result;
}

}  // namespace neuroshard::ui
