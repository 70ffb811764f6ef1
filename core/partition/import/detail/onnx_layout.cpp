// Shapes of the ONNX operators that move, cut or join tensors.
#include <algorithm>
#include <cmath>
#include <map>

#include "core/partition/import/detail/onnx_operator.h"

namespace neuroshard::partition::detail {
namespace {

using Shape = OnnxShape;
using Values = std::vector<std::int64_t>;

constexpr std::int64_t most_dimension = max_onnx_elements;

std::optional<Shape> reshape(const OnnxOperator& op) {
  const auto x = op.shape(0);
  bool unknown = false;
  const auto target = op.setting("shape", 1, &unknown);
  if (!x || !target) return {};
  Shape shape = *target;
  std::optional<std::size_t> open;
  std::int64_t known = 1;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] == 0 && op.integer("allowzero", 0) == 0) {
      if (i >= x->size()) return {};
      shape[i] = (*x)[i];
    }
    if (shape[i] == -1) {
      if (open) return {};
      open = i;
    } else if (shape[i] < 0 || (shape[i] > 0 && known > most_dimension / shape[i])) {
      return {};
    } else {
      known *= shape[i];
    }
  }
  const auto total = onnx_elements(*x);
  if (!total) return {};
  if (open) {
    if (known == 0 || *total % known != 0) return {};
    shape[*open] = *total / known;
  } else if (known != *total) {
    return {};
  }
  return shape;
}

std::optional<Shape> transpose(const OnnxOperator& op) {
  const auto x = op.shape(0);
  if (!x) return {};
  Shape shape(x->size());
  const auto order = op.list("perm");
  if (order && order->size() != x->size()) return {};
  for (std::size_t i = 0; i < x->size(); ++i) {
    const auto from = order ? axis_of((*order)[i], x->size()) : std::optional(x->size() - 1 - i);
    if (!from) return {};
    shape[i] = (*x)[*from];
  }
  return shape;
}

std::optional<Shape> flatten(const OnnxOperator& op) {
  const auto x = op.shape(0);
  if (!x) return {};
  const std::int64_t axis = op.integer("axis", 1);
  const auto rank = static_cast<std::int64_t>(x->size());
  if (axis < -rank || axis > rank) return {};
  const auto middle = x->begin() + (axis < 0 ? axis + rank : axis);
  const auto rows = onnx_elements(Shape(x->begin(), middle)),
             columns = onnx_elements(Shape(middle, x->end()));
  if (!rows || !columns) return {};
  return Shape{*rows, *columns};
}

std::optional<Shape> squeeze(const OnnxOperator& op) {
  const auto x = op.shape(0);
  bool unknown = false;
  const auto axes = op.setting("axes", 1, &unknown);
  if (!x || unknown) return {};
  if (!axes) {
    Shape shape;
    std::copy_if(x->begin(), x->end(), std::back_inserter(shape), [](std::int64_t dim) { return dim != 1; });
    return shape;
  }
  return without_axes(*x, axes, false);
}

std::optional<Shape> unsqueeze(const OnnxOperator& op) {
  const auto x = op.shape(0);
  bool unknown = false;
  const auto axes = op.setting("axes", 1, &unknown);
  if (!x || !axes || x->size() + axes->size() > max_onnx_rank) return {};
  std::vector<bool> is_new(x->size() + axes->size());
  for (const std::int64_t axis : *axes) {
    const auto at = axis_of(axis, is_new.size());
    if (!at || is_new[*at]) return {};
    is_new[*at] = true;
  }
  Shape shape;
  auto next = x->begin();
  for (const bool added : is_new) shape.push_back(added ? 1 : *next++);
  return shape;
}

std::optional<Shape> concat(const OnnxOperator& op) {
  auto shape = op.shape(0);
  if (!shape) return {};
  const auto axis = axis_of(op.integer("axis", 0), shape->size());
  if (!axis) return {};
  for (std::size_t i = 1; i < op.input_count(); ++i) {
    const auto next = op.shape(i);
    if (!next || next->size() != shape->size()) return {};
    (*shape)[*axis] += (*next)[*axis];
    if ((*shape)[*axis] > most_dimension) return {};
  }
  return shape;
}

void split(const OnnxOperator& op, std::vector<OnnxValue>* outputs) {
  const auto x = op.shape(0);
  if (!x) return;
  const auto axis = axis_of(op.integer("axis", 0), x->size());
  bool unknown = false;
  const auto sizes = op.setting("split", 1, &unknown);
  if (!axis || unknown || (sizes && sizes->size() != outputs->size())) return;
  const auto parts = static_cast<std::int64_t>(outputs->size());
  const std::int64_t whole = (*x)[*axis], each = (whole + parts - 1) / parts;
  for (std::size_t i = 0; i < outputs->size(); ++i) {
    Shape shape = *x;
    const auto before = each * static_cast<std::int64_t>(i);
    shape[*axis] = sizes ? (*sizes)[i] : std::clamp<std::int64_t>(whole - before, 0, each);
    (*outputs)[i].shape = shape;
    (*outputs)[i].type = op.type(0);
  }
}

std::optional<Shape> slice(const OnnxOperator& op) {
  auto shape = op.shape(0);
  bool unknown = false;
  const auto starts = op.setting("starts", 1, &unknown), ends = op.setting("ends", 2, &unknown);
  if (!shape || !starts || !ends || starts->size() != ends->size()) return {};
  bool unknown_axes = false, unknown_steps = false;
  const auto axes = op.setting("axes", 3, &unknown_axes), steps = op.setting("steps", 4, &unknown_steps);
  if (unknown_axes || unknown_steps) return {};
  for (std::size_t i = 0; i < starts->size(); ++i) {
    const auto axis =
        axis_of(axes && i < axes->size() ? (*axes)[i] : static_cast<std::int64_t>(i), shape->size());
    const std::int64_t step = steps && i < steps->size() ? (*steps)[i] : 1;
    if (!axis || step == 0 || step == INT64_MIN) return {};
    const std::int64_t size = (*shape)[*axis];
    const auto place = [&](std::int64_t value) {
      if (value < 0) value = value < -size ? -1 : value + size;
      return step > 0 ? std::clamp<std::int64_t>(value, 0, size)
                      : std::clamp<std::int64_t>(value, -1, size - 1);
    };
    const std::int64_t from = place((*starts)[i]), to = place((*ends)[i]);
    const std::int64_t distance = step > 0 ? to - from : from - to, pace = std::abs(step);
    (*shape)[*axis] = distance <= 0 ? 0 : (distance - 1) / pace + 1;
  }
  return shape;
}

std::optional<Shape> gather(const OnnxOperator& op) {
  const auto x = op.shape(0), indices = op.shape(1);
  if (!x || !indices) return {};
  const auto axis = axis_of(op.integer("axis", 0), x->size());
  if (!axis) return {};
  Shape shape(x->begin(), x->begin() + static_cast<std::ptrdiff_t>(*axis));
  shape.insert(shape.end(), indices->begin(), indices->end());
  shape.insert(shape.end(), x->begin() + static_cast<std::ptrdiff_t>(*axis) + 1, x->end());
  return shape;
}

std::optional<Shape> gather_nd(const OnnxOperator& op) {
  const auto x = op.shape(0), indices = op.shape(1);
  if (!x || !indices || indices->empty()) return {};
  const std::int64_t skipped = op.integer("batch_dims", 0) + indices->back();
  if (skipped < 0 || skipped > static_cast<std::int64_t>(x->size())) return {};
  Shape shape(indices->begin(), indices->end() - 1);
  shape.insert(shape.end(), x->begin() + skipped, x->end());
  return shape;
}

std::optional<Shape> expand(const OnnxOperator& op) {
  const auto x = op.shape(0), target = op.values(1);
  return x && target ? broadcast(*x, *target) : std::nullopt;
}

std::optional<Shape> tile(const OnnxOperator& op) {
  auto shape = op.shape(0);
  const auto repeats = op.values(1);
  if (!shape || !repeats || repeats->size() != shape->size()) return {};
  for (std::size_t i = 0; i < shape->size(); ++i) {
    const auto dim = onnx_elements({(*shape)[i], (*repeats)[i]});
    if (!dim) return {};
    (*shape)[i] = *dim;
  }
  return shape;
}

std::optional<Shape> pad(const OnnxOperator& op) {
  auto shape = op.shape(0);
  bool unknown = false;
  const auto pads = op.setting("pads", 1, &unknown);
  if (!shape || !pads) return {};
  const auto axes = op.values(3);
  const std::size_t count = axes ? axes->size() : shape->size();
  if (pads->size() != 2 * count) return {};
  for (std::size_t i = 0; i < count; ++i) {
    const auto axis = axis_of(axes ? (*axes)[i] : static_cast<std::int64_t>(i), shape->size());
    const auto huge = [](std::int64_t value) { return value > most_dimension || value < -most_dimension; };
    if (!axis || huge((*pads)[i]) || huge((*pads)[i + count])) return {};
    (*shape)[*axis] += (*pads)[i] + (*pads)[i + count];
  }
  return shape;
}

// Sizes where they are given, else scales: input 2 (1 before operator set 11, and of Upsample).
std::optional<Shape> resize(const OnnxOperator& op) {
  auto shape = op.shape(0);
  if (!shape) return {};
  const bool modern = op.name() == "Resize" && op.opset() >= 11;
  if (modern && op.given(3)) {
    const auto sizes = op.values(3);
    return sizes && sizes->size() == shape->size() ? sizes : std::nullopt;
  }
  const std::vector<double> scales = op.reals(modern ? 2 : 1);
  if (scales.size() != shape->size()) return {};
  for (std::size_t i = 0; i < scales.size(); ++i) {
    const double size = std::floor(static_cast<double>((*shape)[i]) * scales[i]);
    if (!(size >= 0) || size > static_cast<double>(most_dimension)) return {};
    (*shape)[i] = static_cast<std::int64_t>(size);
  }
  return shape;
}

std::optional<Shape> blocks(const OnnxOperator& op) {
  auto shape = op.shape(0);
  const std::int64_t size = op.integer("blocksize", 0);
  if (!shape || shape->size() != 4 || size <= 0 || size > 1024) return {};
  const bool to_depth = op.name() == "SpaceToDepth";
  Shape& s = *shape;
  if (to_depth ? s[2] % size != 0 || s[3] % size != 0 : s[1] % (size * size) != 0) return {};
  return to_depth ? Shape{s[0], s[1] * size * size, s[2] / size, s[3] / size}
                  : Shape{s[0], s[1] / (size * size), s[2] * size, s[3] * size};
}

void top_k(const OnnxOperator& op, std::vector<OnnxValue>* outputs) {
  auto shape = op.shape(0);
  const auto k = op.has("k") ? std::optional(Values{op.integer("k", 1)}) : op.values(1);
  if (!shape || !k || k->size() != 1) return;
  const auto axis = axis_of(op.integer("axis", -1), shape->size());
  if (!axis) return;
  (*shape)[*axis] = (*k)[0];
  for (std::size_t i = 0; i < outputs->size(); ++i) {
    (*outputs)[i].shape = shape;
    (*outputs)[i].type = i == 0 ? op.type(0) : OnnxType::Int64;
  }
}

}  // namespace

std::optional<OnnxShape> without_axes(const OnnxShape& shape, const std::optional<Values>& axes, bool keep) {
  std::vector<bool> gone(shape.size(), !axes);
  for (const std::int64_t axis : axes.value_or(Values{})) {
    const auto at = axis_of(axis, shape.size());
    if (!at) return {};
    gone[*at] = true;
  }
  Shape result;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (!gone[i]) result.push_back(shape[i]);
    if (gone[i] && keep) result.push_back(1);
  }
  return result;
}

void infer_layout(const OnnxOperator& op, std::vector<OnnxValue>* outputs) {
  using Rule = std::optional<Shape> (*)(const OnnxOperator&);
  static const std::map<std::string_view, Rule> rules = {
      {"Reshape", reshape},     {"Transpose", transpose}, {"Flatten", flatten},     {"Squeeze", squeeze},
      {"Unsqueeze", unsqueeze}, {"Concat", concat},       {"Slice", slice},         {"Gather", gather},
      {"GatherND", gather_nd},  {"Expand", expand},       {"Tile", tile},           {"Pad", pad},
      {"Resize", resize},       {"Upsample", resize},     {"DepthToSpace", blocks}, {"SpaceToDepth", blocks}};
  const std::string_view name = op.name();
  OnnxValue& y = outputs->front();
  y.type = op.type(0);
  if (const auto rule = rules.find(name); rule != rules.end()) {
    y.shape = rule->second(op);
  } else if (name == "Split") {
    split(op, outputs);
  } else if (name == "TopK") {
    top_k(op, outputs);
  } else if (name == "GatherElements") {
    y.shape = op.shape(1);
  } else if (name == "QuantizeLinear") {
    y.shape = op.shape(0);
    y.type = op.given(2) ? op.type(2) : OnnxType::Uint8;
  } else if (name == "DequantizeLinear") {
    y.shape = op.shape(0);
    y.type = op.type(1);
  } else if (name == "DynamicQuantizeLinear") {
    for (OnnxValue& output : *outputs) output = {OnnxType::Float, Shape{}, false, {}, {}};
    y = {OnnxType::Uint8, op.shape(0), false, {}, {}};
    if (outputs->size() > 2) (*outputs)[2].type = OnnxType::Uint8;
  } else if (!infer_made(op, &y)) {
    y.type = OnnxType::Undefined;
  }
}

}  // namespace neuroshard::partition::detail
