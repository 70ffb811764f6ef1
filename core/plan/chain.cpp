#include "core/plan/chain.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/compute/module.h"

namespace neuroshard::plan {
namespace {

using compute::SlotKind;

// One multiplication and one addition forward, twice as much backward.
constexpr double flop_per_parameter = 6;
// Of fp32 weights and outer momentum.
constexpr std::uint64_t transfer_bytes_per_parameter = 8;
// Of fp32 weights, gradients and moments.
constexpr std::uint64_t trained_bytes_per_parameter = 16;

Error bad(std::string message) {
  return make_error(ErrorCode::InvalidArgument, std::move(message));
}

compute::StageSpec stage_of(const compute::ModelShape& shape, UnitRange range) {
  compute::StageSpec spec;
  spec.shape = shape;
  spec.embed = range.first == 0;
  spec.head = range.end == shape.layers + 2;
  spec.first_layer = range.first == 0 ? 0 : range.first - 1;
  const std::uint32_t layers_end = std::min(range.end - 1, shape.layers);
  spec.layer_count = layers_end > spec.first_layer ? layers_end - spec.first_layer : 0;
  if (spec.layer_count == 0) spec.first_layer = 0;
  return spec;
}

Unit layer_unit(const compute::ModelShape& shape, std::uint32_t layer) {
  const std::uint64_t own = slot_parameter_count(shape, {SlotKind::Layer, layer, 0});
  const std::uint64_t expert = slot_parameter_count(shape, {SlotKind::Expert, layer, 0});
  Unit unit;
  unit.name = to_string(compute::SlotId{SlotKind::Layer, layer, 0});
  unit.work = layer_work(shape);
  unit.transfer_bytes = transfer_bytes_per_parameter * (own + shape.experts * expert);
  return unit;
}

}  // namespace

// A row of the embedding is copied, and its gradient added.
double embedding_work(const compute::ModelShape& shape) {
  return 2.0 * shape.hidden;
}

double layer_work(const compute::ModelShape& shape) {
  const std::uint64_t own = slot_parameter_count(shape, {SlotKind::Layer, 0, 0});
  const std::uint64_t expert = slot_parameter_count(shape, {SlotKind::Expert, 0, 0});
  return flop_per_parameter * static_cast<double>(own + shape.experts_per_token * expert);
}

double head_work(const compute::ModelShape& shape) {
  return flop_per_parameter * static_cast<double>(slot_parameter_count(shape, {SlotKind::Head, 0, 0}));
}

Expected<Chain> Chain::of_shape(const GrowthRules& rules, const compute::ModelShape& shape,
                                double boundary_bytes) {
  NS_RETURN_IF_ERROR(compute::validate(shape));
  if (shape.layers > most_layers)
    return bad(fmt::format("the shape has {} layers; a plan places at most {}", shape.layers, most_layers));
  if (!(boundary_bytes > 0)) return bad("the bytes of a token at a boundary must be positive");
  Chain chain;
  chain.boundary_bytes_ = boundary_bytes;
  const std::uint64_t embed = slot_parameter_count(shape, {SlotKind::Embed, 0, 0});
  const std::uint64_t head = slot_parameter_count(shape, {SlotKind::Head, 0, 0});
  chain.units_.push_back({to_string(compute::SlotId{SlotKind::Embed, 0, 0}), embedding_work(shape),
                          transfer_bytes_per_parameter * embed});
  for (std::uint32_t layer = 0; layer < shape.layers; ++layer)
    chain.units_.push_back(layer_unit(shape, layer));
  chain.units_.push_back({to_string(compute::SlotId{SlotKind::Head, 0, 0}), head_work(shape),
                          transfer_bytes_per_parameter * head});
  const std::uint32_t size = chain.size();
  chain.memory_.resize(std::size_t{size} * (size + 1));
  for (std::uint32_t first = 0; first < size; ++first) {
    for (std::uint32_t end = first + 1; end <= size; ++end)
      chain.memory_[first * (size + 1) + end] = training_bytes(rules, stage_of(shape, {first, end}));
  }
  chain.sum_up();
  return chain;
}

Expected<Chain> Chain::of_units(std::vector<Unit> units, const std::vector<std::uint64_t>& unit_bytes,
                                std::uint64_t fixed_bytes, double boundary_bytes) {
  if (units.empty() || units.size() > most_units || units.size() != unit_bytes.size())
    return bad(fmt::format("a chain has 1 to {} units, each with its bytes", most_units));
  for (const Unit& unit : units) {
    if (!(unit.work > 0) || !std::isfinite(unit.work)) return bad("the work of a unit must be positive");
  }
  if (!(boundary_bytes > 0)) return bad("the bytes of a token at a boundary must be positive");
  Chain chain;
  chain.units_ = std::move(units);
  chain.boundary_bytes_ = boundary_bytes;
  const std::uint32_t size = chain.size();
  chain.memory_.resize(std::size_t{size} * (size + 1));
  for (std::uint32_t first = 0; first < size; ++first) {
    std::uint64_t bytes = fixed_bytes;
    for (std::uint32_t end = first + 1; end <= size; ++end) {
      bytes += unit_bytes[end - 1];
      chain.memory_[first * (size + 1) + end] = bytes;
    }
  }
  chain.sum_up();
  return chain;
}

void Chain::sum_up() {
  work_before_.assign(1, 0);
  transfer_before_.assign(1, 0);
  for (const Unit& unit : units_) {
    work_before_.push_back(work_before_.back() + unit.work);
    transfer_before_.push_back(transfer_before_.back() + unit.transfer_bytes);
  }
}

std::string Chain::describe(UnitRange range) const {
  if (range.empty()) return "nothing";
  if (range == whole()) return "the whole model";
  if (range.end == range.first + 1) return units_[range.first].name;
  return fmt::format("{} to {}", units_[range.first].name, units_[range.end - 1].name);
}

std::uint64_t usable_bytes(const PlanPeer& peer, std::uint64_t baseline_bytes) {
  const std::uint64_t counted = counted_bytes(peer.memory);
  return counted > baseline_bytes ? counted - baseline_bytes : 0;
}

std::uint64_t counted_memory(const PlanPeer& peer, double fill_seconds, std::uint64_t baseline_bytes) {
  const double filled =
      peer.down * fill_seconds * (trained_bytes_per_parameter / transfer_bytes_per_parameter);
  if (filled >= static_cast<double>(peer.memory)) return peer.memory;
  return std::min(peer.memory, static_cast<std::uint64_t>(filled) + baseline_bytes);
}

double counted_speed(double declared, std::vector<double> measured) {
  if (measured.empty()) return declared;
  const auto middle = measured.begin() + static_cast<std::ptrdiff_t>((measured.size() - 1) / 2);
  std::nth_element(measured.begin(), middle, measured.end());
  return std::min(declared, *middle);
}

}  // namespace neuroshard::plan
