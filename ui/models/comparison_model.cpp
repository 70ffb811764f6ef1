#include "ui/models/comparison_model.h"

#include <cmath>
#include <string>

#include "ui/text/format.h"

namespace neuroshard::ui {
namespace {

// "expert 3.5" belongs to "layer 3".
std::string layer_of(const std::string& slot) {
  constexpr std::string_view expert = "expert ";
  if (slot.compare(0, expert.size(), expert) != 0) return slot;
  return "layer " + slot.substr(expert.size(), slot.find('.') - expert.size());
}

}  // namespace

std::vector<LayerDistance> distance_by_layer(const std::vector<node::SlotDistance>& slots) {
  struct Sum {
    std::string name;
    double difference = 0, weights = 0;  // squared norms
  };
  std::vector<Sum> sums;
  for (const node::SlotDistance& slot : slots) {
    const std::string name = layer_of(slot.slot);
    auto at = sums.begin();
    while (at != sums.end() && at->name != name) ++at;
    if (at == sums.end()) at = sums.insert(sums.end(), Sum{name});
    at->difference += slot.distance * slot.distance;
    const double norm = slot.relative > 0 ? slot.distance / slot.relative : 0;
    at->weights += norm * norm;
  }
  std::vector<LayerDistance> layers;
  for (const Sum& sum : sums)
    layers.push_back({sum.name, sum.weights > 0 ? std::sqrt(sum.difference / sum.weights) : 0});
  return layers;
}

ComparisonModel::ComparisonModel(std::vector<node::SlotDistance> slots, QObject* parent)
    : QAbstractTableModel(parent), slots_(std::move(slots)) {}

int ComparisonModel::rowCount(const QModelIndex& parent) const {
  return parent.isValid() ? 0 : static_cast<int>(slots_.size());
}
int ComparisonModel::columnCount(const QModelIndex& parent) const {
  return parent.isValid() ? 0 : ColumnCount;
}

QVariant ComparisonModel::data(const QModelIndex& at, int role) const {
  if (!at.isValid()) return {};
  const node::SlotDistance& slot = slots_[static_cast<std::size_t>(at.row())];
  if (role == Qt::TextAlignmentRole && at.column() != Slot)
    return QVariant(Qt::AlignRight | Qt::AlignVCenter);
  if (role == SortRole) {
    switch (at.column()) {
      case Relative: return slot.relative;
      case Distance: return slot.distance;
      case Cosine: return slot.cosine;
      default: return at.row();  // the order of the model
    }
  }
  if (role != Qt::DisplayRole) return {};
  switch (at.column()) {
    case Slot: return QString::fromStdString(slot.slot);
    case Relative: return Format::percent(slot.relative);
    case Distance: return Format::significant(slot.distance, 4);
    case Cosine: return Format::significant(slot.cosine, 4);
    default: return {};
  }
}

QVariant ComparisonModel::headerData(int section, Qt::Orientation orientation, int role) const {
  if (orientation == Qt::Horizontal && role == Qt::TextAlignmentRole && section != Slot)
    return QVariant(Qt::AlignRight | Qt::AlignVCenter);
  if (orientation != Qt::Horizontal || role != Qt::DisplayRole) return {};
  switch (section) {
    case Slot: return tr("Part of the model");
    case Relative: return tr("Distance, relative");
    case Distance: return tr("Distance");
    case Cosine: return tr("Cosine");
    default: return {};
  }
}

}  // namespace neuroshard::ui
