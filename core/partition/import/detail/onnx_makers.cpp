// Shapes of the ONNX operators that make tensors, and of those that only change the type.
#include <algorithm>
#include <cmath>

#include "core/partition/import/detail/onnx_operator.h"

namespace neuroshard::partition::detail {
namespace {

using Shape = OnnxShape;
using Values = std::vector<std::int64_t>;

std::optional<Shape> one_hot(const OnnxOperator& op) {
  auto shape = op.shape(0);
  const auto depth = op.values(1);
  if (!shape || !depth || depth->size() != 1) return {};
  const auto axis = axis_of(op.integer("axis", -1), shape->size() + 1);
  if (!axis) return {};
  shape->insert(shape->begin() + static_cast<std::ptrdiff_t>(*axis), (*depth)[0]);
  return shape;
}

std::optional<Shape> range(const OnnxOperator& op) {
  const auto start = op.values(0), limit = op.values(1), delta = op.values(2);
  if (!start || !limit || !delta || start->size() != 1 || limit->size() != 1 || delta->size() != 1) return {};
  const double step = static_cast<double>((*delta)[0]);
  if (step == 0) return {};
  const double count =
      std::ceil((static_cast<double>((*limit)[0]) - static_cast<double>((*start)[0])) / step);
  if (!(count < 1e15)) return {};
  return Shape{static_cast<std::int64_t>(std::max(0.0, count))};
}

void constant(const OnnxOperator& op, OnnxValue* y) {
  if (const OnnxAttribute* value = op.attribute("value"); value && value->tensor) {
    y->type = value->tensor->type;
    y->shape = value->tensor->dims;
    if (value->tensor->has_values) y->integers = value->tensor->integers;
    y->reals = value->tensor->reals;
  } else if (op.has("value_int")) {
    y->type = OnnxType::Int64;
    y->shape = Shape{};
    y->integers = Values{op.attribute("value_int")->integer};
  } else if (const auto values = op.list("value_ints")) {
    y->type = OnnxType::Int64;
    y->shape = Shape{static_cast<std::int64_t>(values->size())};
    if (values->size() <= max_onnx_constant) y->integers = values;
  } else if (op.has("value_float")) {
    y->type = OnnxType::Float;
    y->shape = Shape{};
  } else if (const OnnxAttribute* reals = op.attribute("value_floats")) {
    y->type = OnnxType::Float;
    y->shape = Shape{static_cast<std::int64_t>(reals->reals)};
  }
}

// Shape and Size, which are constants here.
void shape_of(const OnnxOperator& op, OnnxValue* y) {
  y->type = OnnxType::Int64;
  const auto x = op.shape(0);
  if (!x) return;
  if (op.name() == "Size") {
    y->shape = Shape{};
    if (const auto count = onnx_elements(*x)) y->integers = Values{*count};
    return;
  }
  const auto rank = static_cast<std::int64_t>(x->size());
  const auto bound = [&](const char* name, std::int64_t otherwise) {
    const std::int64_t value = op.integer(name, otherwise);
    return std::clamp<std::int64_t>(value < 0 ? value + rank : value, 0, rank);
  };
  const std::int64_t from = bound("start", 0), to = std::max(from, bound("end", rank));
  y->integers = Values(x->begin() + from, x->begin() + to);
  y->shape = Shape{to - from};
}

std::optional<Shape> same(const OnnxOperator& op, OnnxValue* y, const char* attribute) {
  if (op.has(attribute)) y->type = static_cast<OnnxType>(op.integer(attribute, 0));
  return op.shape(0);
}

std::optional<Shape> fill(const OnnxOperator& op, OnnxValue* y) {
  const OnnxAttribute* value = op.attribute("value");
  y->type = value && value->tensor ? value->tensor->type : OnnxType::Float;
  return op.values(0);
}

}  // namespace

std::optional<std::int64_t> onnx_elements(const OnnxShape& shape) {
  std::int64_t result = 1;
  for (const std::int64_t dim : shape) {
    if (dim < 0 || (dim > 0 && result > max_onnx_elements / dim)) return {};
    result *= dim;
  }
  return result;
}

bool infer_made(const OnnxOperator& op, OnnxValue* y) {
  const std::string_view name = op.name();
  if (name == "Constant") {
    constant(op, y);
  } else if (name == "Shape" || name == "Size") {
    shape_of(op, y);
  } else if (name == "Cast") {
    y->shape = same(op, y, "to");
  } else if (name == "CastLike") {
    y->shape = op.shape(0);
    y->type = op.type(1);
  } else if (name == "ConstantOfShape") {
    y->shape = fill(op, y);
  } else if (name == "RandomNormalLike" || name == "RandomUniformLike" || name == "EyeLike" ||
             name == "Bernoulli") {
    y->shape = same(op, y, "dtype");
  } else if (name == "RandomNormal" || name == "RandomUniform") {
    y->shape = op.list("shape");
    y->type = static_cast<OnnxType>(op.integer("dtype", 1));
  } else if (name == "Range") {
    y->shape = range(op);
  } else if (name == "OneHot") {
    y->shape = one_hot(op);
    y->type = op.type(2);
  } else {
    return false;
  }
  return true;
}

}  // namespace neuroshard::partition::detail
