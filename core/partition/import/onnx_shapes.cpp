#include "core/partition/import/onnx_shapes.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include "core/partition/import/detail/onnx_operator.h"

namespace neuroshard::partition {
namespace {

using detail::OnnxOperator;
using Shape = OnnxShape;
using Values = std::vector<std::int64_t>;

double count_of(const Shape& shape) {
  double count = 1;
  for (const std::int64_t dim : shape) count *= static_cast<double>(dim);
  return count;
}

template <std::size_t N>
bool one_of(std::string_view op, const std::array<std::string_view, N>& names) {
  return std::find(names.begin(), names.end(), op) != names.end();
}

constexpr auto same_shape_ops = std::to_array<std::string_view>({"Relu",
                                                                 "Sigmoid",
                                                                 "Tanh",
                                                                 "Erf",
                                                                 "Exp",
                                                                 "Log",
                                                                 "Sqrt",
                                                                 "Neg",
                                                                 "Abs",
                                                                 "Identity",
                                                                 "Clip",
                                                                 "LeakyRelu",
                                                                 "Elu",
                                                                 "Selu",
                                                                 "Softplus",
                                                                 "HardSigmoid",
                                                                 "HardSwish",
                                                                 "Gelu",
                                                                 "FastGelu",
                                                                 "QuickGelu",
                                                                 "BiasGelu",
                                                                 "Softmax",
                                                                 "LogSoftmax",
                                                                 "Hardmax",
                                                                 "Floor",
                                                                 "Ceil",
                                                                 "Round",
                                                                 "Sign",
                                                                 "Reciprocal",
                                                                 "Softsign",
                                                                 "Sin",
                                                                 "Cos",
                                                                 "Tan",
                                                                 "Asin",
                                                                 "Acos",
                                                                 "Atan",
                                                                 "Sinh",
                                                                 "Cosh",
                                                                 "Asinh",
                                                                 "Acosh",
                                                                 "Atanh",
                                                                 "CumSum",
                                                                 "InstanceNormalization",
                                                                 "GroupNormalization",
                                                                 "LRN",
                                                                 "Mish",
                                                                 "Celu",
                                                                 "Trilu",
                                                                 "ThresholdedRelu",
                                                                 "ScatterND",
                                                                 "ScatterElements",
                                                                 "Scatter",
                                                                 "LpNormalization",
                                                                 "MeanVarianceNormalization",
                                                                 "RotaryEmbedding",
                                                                 "BitwiseNot",
                                                                 "ReverseSequence",
                                                                 "Swish",
                                                                 "SimplifiedLayerNormalization",
                                                                 "RMSNormalization",
                                                                 "Shrink"});
constexpr auto first_output_ops = std::to_array<std::string_view>(
    {"BatchNormalization", "LayerNormalization", "Dropout", "SkipLayerNormalization"});
constexpr auto broadcast_ops =
    std::to_array<std::string_view>({"Add", "Sub", "Mul", "Div", "Pow", "Mod", "Min", "Max", "Sum", "Mean",
                                     "PRelu", "BitShift", "BitwiseAnd", "BitwiseOr", "BitwiseXor"});
constexpr auto comparison_ops = std::to_array<std::string_view>(
    {"Equal", "Greater", "Less", "GreaterOrEqual", "LessOrEqual", "And", "Or", "Xor"});
constexpr auto bool_ops = std::to_array<std::string_view>({"Not", "IsNaN", "IsInf"});
constexpr auto reduce_ops = std::to_array<std::string_view>(
    {"ReduceMean", "ReduceSum", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1", "ReduceL2",
     "ReduceLogSum", "ReduceLogSumExp", "ReduceSumSquare"});

std::optional<Shape> matmul_shape(Shape a, Shape b) {
  if (a.empty() || b.empty()) return {};
  const bool row = a.size() == 1, column = b.size() == 1;
  if (row) a.insert(a.begin(), 1);
  if (column) b.push_back(1);
  if (a.back() != b[b.size() - 2]) return {};
  auto shape = broadcast(Shape(a.begin(), a.end() - 2), Shape(b.begin(), b.end() - 2));
  if (!shape) return {};
  if (!row) shape->push_back(a[a.size() - 2]);
  if (!column) shape->push_back(b.back());
  return shape;
}

// One spatial dimension after a window: convolution and pooling (Operators.md, Conv and MaxPool).
std::int64_t window_output(const OnnxOperator& op, std::size_t axis, std::size_t axes, std::int64_t input,
                           std::int64_t kernel) {
  const std::int64_t stride = op.at("strides", axis, 1), dilation = op.at("dilations", axis, 1);
  const std::int64_t reach = dilation * (kernel - 1) + 1;
  const std::string pad = op.text("auto_pad", "NOTSET");
  if (stride <= 0 || kernel <= 0 || dilation <= 0) return -1;
  if (pad == "SAME_UPPER" || pad == "SAME_LOWER") return (input + stride - 1) / stride;
  const std::int64_t pads = pad == "VALID" ? 0 : op.at("pads", axis, 0) + op.at("pads", axis + axes, 0);
  const std::int64_t room = input + pads - reach;
  if (room < 0) return -1;
  std::int64_t result = room / stride + 1;
  if (op.integer("ceil_mode", 0) != 0 && room % stride != 0) {
    ++result;
    // A window that would start in the padding behind the input is left out.
    if ((result - 1) * stride >= input + op.at("pads", axis, 0)) --result;
  }
  return result;
}

std::optional<Shape> conv_shape(const OnnxOperator& op) {
  const auto x = op.shape(0), w = op.shape(1);
  if (!x || !w || x->size() < 3 || w->size() != x->size()) return {};
  const std::size_t axes = x->size() - 2;
  Shape shape{(*x)[0], (*w)[0]};
  for (std::size_t i = 0; i < axes; ++i) {
    shape.push_back(window_output(op, i, axes, (*x)[i + 2], (*w)[i + 2]));
  }
  return shape;
}

std::optional<Shape> conv_transpose_shape(const OnnxOperator& op) {
  const auto x = op.shape(0), w = op.shape(1);
  if (!x || !w || x->size() < 3 || w->size() != x->size()) return {};
  const std::size_t axes = x->size() - 2;
  Shape shape{(*x)[0], (*w)[1] * op.integer("group", 1)};
  const std::string pad = op.text("auto_pad", "NOTSET");
  for (std::size_t i = 0; i < axes; ++i) {
    const std::int64_t stride = op.at("strides", i, 1);
    if (op.has("output_shape")) {
      shape.push_back(op.at("output_shape", i, -1));
    } else if (pad == "SAME_UPPER" || pad == "SAME_LOWER") {
      shape.push_back((*x)[i + 2] * stride);
    } else {
      shape.push_back(stride * ((*x)[i + 2] - 1) + op.at("output_padding", i, 0) +
                      ((*w)[i + 2] - 1) * op.at("dilations", i, 1) + 1 - op.at("pads", i, 0) -
                      op.at("pads", i + axes, 0));
    }
  }
  return shape;
}

std::optional<Shape> pool_shape(const OnnxOperator& op) {
  const auto x = op.shape(0);
  if (!x || x->size() < 3) return {};
  const std::size_t axes = x->size() - 2;
  Shape shape{(*x)[0], (*x)[1]};
  for (std::size_t i = 0; i < axes; ++i) {
    shape.push_back(window_output(op, i, axes, (*x)[i + 2], op.at("kernel_shape", i, 0)));
  }
  return shape;
}

std::optional<Shape> global_pool_shape(const OnnxOperator& op) {
  auto x = op.shape(0);
  if (!x || x->size() < 3) return {};
  std::fill(x->begin() + 2, x->end(), 1);
  return x;
}

std::optional<Shape> reduce_shape(const OnnxOperator& op, bool has_axes_input) {
  const auto x = op.shape(0);
  if (!x) return {};
  std::optional<Values> axes = op.list("axes");
  if (!axes && has_axes_input && op.given(1)) {
    axes = op.values(1);
    if (!axes) return {};
  }
  const bool keep = op.integer("keepdims", 1) != 0;
  if ((!axes || axes->empty()) && op.integer("noop_with_empty_axes", 0) != 0) return x;
  return detail::without_axes(*x, axes && !axes->empty() ? axes : std::nullopt, keep);
}

std::optional<Shape> arg_shape(const OnnxOperator& op) {
  const auto x = op.shape(0);
  if (!x) return {};
  return detail::without_axes(*x, Values{op.integer("axis", 0)}, op.integer("keepdims", 1) != 0);
}

std::optional<Shape> gemm_shape(const OnnxOperator& op) {
  const auto a = op.shape(0), b = op.shape(1);
  if (!a || !b || a->size() != 2 || b->size() != 2) return {};
  const bool ta = op.integer("transA", 0) != 0, tb = op.integer("transB", 0) != 0;
  if ((*a)[ta ? 0 : 1] != (*b)[tb ? 1 : 0]) return {};
  return Shape{(*a)[ta ? 1 : 0], (*b)[tb ? 0 : 1]};
}

// LSTM, GRU, RNN: Y, Y_h, Y_c.
void recurrent(const OnnxOperator& op, std::vector<OnnxValue>* outputs) {
  const auto x = op.shape(0), r = op.shape(2);
  if (!x || !r || x->size() != 3 || r->size() != 3) return;
  const bool batch_first = op.integer("layout", 0) != 0;
  const std::int64_t directions = (*r)[0], hidden = (*r)[2];
  const std::int64_t steps = (*x)[batch_first ? 1 : 0], batch = (*x)[batch_first ? 0 : 1];
  const Shape sequence =
      batch_first ? Shape{batch, steps, directions, hidden} : Shape{steps, directions, batch, hidden};
  const Shape state = batch_first ? Shape{batch, directions, hidden} : Shape{directions, batch, hidden};
  for (std::size_t i = 0; i < outputs->size(); ++i) (*outputs)[i].shape = i == 0 ? sequence : state;
}

std::optional<Shape> broadcast_all(const OnnxOperator& op) {
  std::optional<Shape> shape = Shape{};
  for (std::size_t i = 0; i < op.input_count(); ++i) {
    const auto next = op.shape(i);
    if (!next) return {};
    shape = broadcast(*shape, *next);
    if (!shape) return {};
  }
  return shape;
}

// Elementwise operators and products: one output shape from the inputs' shapes. False: not one of these.
bool compute_shape(const OnnxOperator& op, std::vector<OnnxValue>* outputs) {
  OnnxValue& y = outputs->front();
  const std::string_view name = op.name();
  y.type = op.type(0);
  if (one_of(name, same_shape_ops)) {
    y.shape = op.shape(0);
  } else if (one_of(name, first_output_ops)) {
    y.shape = op.shape(0);
    // Masks and statistics: as large as they can be.
    for (std::size_t i = 1; i < outputs->size(); ++i) {
      (*outputs)[i].shape =
          name == "Dropout" ? op.shape(0) : op.shape(std::min<std::size_t>(3, op.input_count() - 1));
      (*outputs)[i].type = name == "Dropout" ? OnnxType::Bool : op.type(0);
    }
  } else if (one_of(name, broadcast_ops) || name == "Where" || one_of(name, comparison_ops)) {
    y.shape = broadcast_all(op);
    if (name == "Where") y.type = op.type(1);
    if (one_of(name, comparison_ops)) y.type = OnnxType::Bool;
  } else if (one_of(name, bool_ops)) {
    y.shape = op.shape(0);
    y.type = OnnxType::Bool;
  } else if (name == "MatMul" || name == "MatMulInteger" || name == "FusedMatMul") {
    const auto a = op.shape(0), b = op.shape(1);
    if (a && b) y.shape = matmul_shape(*a, *b);
    if (name == "MatMulInteger") y.type = OnnxType::Int32;
  } else if (name == "Gemm") {
    y.shape = gemm_shape(op);
  } else if (name == "Conv" || name == "ConvInteger") {
    y.shape = conv_shape(op);
    if (name == "ConvInteger") y.type = OnnxType::Int32;
  } else if (name == "ConvTranspose") {
    y.shape = conv_transpose_shape(op);
  } else if (name == "MaxPool" || name == "AveragePool" || name == "LpPool") {
    y.shape = pool_shape(op);
    for (std::size_t i = 1; i < outputs->size(); ++i)
      (*outputs)[i] = {OnnxType::Int64, y.shape, false, {}, {}};
  } else if (name == "GlobalAveragePool" || name == "GlobalMaxPool" || name == "GlobalLpPool") {
    y.shape = global_pool_shape(op);
  } else if (one_of(name, reduce_ops)) {
    y.shape = reduce_shape(op, true);
  } else if (name == "ArgMax" || name == "ArgMin") {
    y.shape = arg_shape(op);
    y.type = OnnxType::Int64;
  } else if (name == "LSTM" || name == "GRU" || name == "RNN") {
    for (OnnxValue& output : *outputs) output.type = op.type(0);
    recurrent(op, outputs);
  } else if (name == "Einsum") {
    y.shape = detail::einsum_shape(op);
  } else if (name == "Attention" && op.shape(0) && op.shape(0)->size() == 3 && op.shape(1) &&
             op.shape(1)->size() == 2) {
    // com.microsoft: [B,S,I] × [I,3H] → [B,S,H].
    y.shape = Shape{(*op.shape(0))[0], (*op.shape(0))[1], (*op.shape(1))[1] / 3};
  } else {
    return false;
  }
  return true;
}

}  // namespace

bool is_sensible(const OnnxShape& shape) {
  constexpr std::int64_t most_dimension = std::int64_t{1} << 40;
  constexpr double most_elements = 1e15;
  double count = 1;
  for (const std::int64_t dim : shape) {
    if (dim < 0 || dim > most_dimension) return false;
    count *= static_cast<double>(dim);
  }
  return shape.size() <= max_onnx_rank && count <= most_elements;
}

double OnnxValue::elements() const {
  return shape ? count_of(*shape) : 0;
}

std::optional<OnnxShape> broadcast(const OnnxShape& a, const OnnxShape& b) {
  const std::size_t rank = std::max(a.size(), b.size());
  Shape shape(rank);
  for (std::size_t i = 0; i < rank; ++i) {
    const std::int64_t x = i + a.size() >= rank ? a[i + a.size() - rank] : 1;
    const std::int64_t y = i + b.size() >= rank ? b[i + b.size() - rank] : 1;
    if (x != y && x != 1 && y != 1) return {};
    shape[i] = x == 1 ? y : x;
  }
  return shape;
}

std::vector<OnnxValue> infer_outputs(const OnnxNode& node, const OnnxInputs& inputs, std::int64_t opset) {
  std::vector<OnnxValue> outputs(node.outputs.size());
  if (outputs.empty()) return outputs;
  const OnnxOperator op(node, inputs, opset);
  if (!compute_shape(op, &outputs)) detail::infer_layout(op, &outputs);
  const bool constant = detail::is_constant(op);
  for (OnnxValue& output : outputs) {
    if (output.shape && !is_sensible(*output.shape)) output.shape.reset();
    output.constant = constant || output.integers.has_value();
  }
  if (outputs.size() == 1 && !outputs[0].integers) detail::fold_integers(op, &outputs[0]);
  return outputs;
}

}  // namespace neuroshard::partition
