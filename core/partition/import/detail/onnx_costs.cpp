#include "core/partition/import/detail/onnx_costs.h"

#include <algorithm>
#include <array>
#include <map>

namespace neuroshard::partition::detail {
namespace {

double count_of(const std::optional<OnnxShape>& shape) {
  if (!shape) return 0;
  double count = 1;
  for (const std::int64_t dim : *shape) count *= static_cast<double>(dim);
  return count;
}

double dim(const std::optional<OnnxShape>& shape, std::size_t i) {
  return shape && i < shape->size() ? static_cast<double>((*shape)[i]) : 0;
}

// Elements of a weight behind its first two dimensions.
double kernel_of(const std::optional<OnnxShape>& weight) {
  double kernel = 1;
  for (std::size_t i = 2; weight && i < weight->size(); ++i) kernel *= static_cast<double>((*weight)[i]);
  return kernel;
}

double window_of(const OnnxOperator& op) {
  double window = 1;
  for (const std::int64_t size : op.list("kernel_shape").value_or(OnnxShape{}))
    window *= static_cast<double>(size);
  return window;
}

// Gates · directions · steps · batch · 2 · hidden · (input + hidden), and a few operations per gate.
double recurrent_flops(const OnnxOperator& op, double gates) {
  const auto x = op.shape(0), recurrence = op.shape(2);
  const double tokens = dim(x, 0) * dim(x, 1), width = dim(x, 2);
  const double directions = dim(recurrence, 0), hidden = dim(recurrence, 2);
  return directions * tokens * gates * hidden * (2 * (width + hidden) + 4);
}

// Operations per element of the first output (or input, for reductions); what an element costs in exp, erf
// or a division is counted as one.
const std::map<std::string_view, double>& per_output() {
  static const std::map<std::string_view, double> table = {{"Add", 1},
                                                           {"Sub", 1},
                                                           {"Mul", 1},
                                                           {"Div", 1},
                                                           {"Pow", 1},
                                                           {"Mod", 1},
                                                           {"Relu", 1},
                                                           {"LeakyRelu", 2},
                                                           {"PRelu", 2},
                                                           {"Elu", 3},
                                                           {"Selu", 3},
                                                           {"Celu", 3},
                                                           {"Sigmoid", 4},
                                                           {"Tanh", 1},
                                                           {"Erf", 1},
                                                           {"Exp", 1},
                                                           {"Log", 1},
                                                           {"Sqrt", 1},
                                                           {"Neg", 1},
                                                           {"Abs", 1},
                                                           {"Reciprocal", 1},
                                                           {"Clip", 2},
                                                           {"Softplus", 2},
                                                           {"Mish", 5},
                                                           {"HardSigmoid", 3},
                                                           {"HardSwish", 4},
                                                           {"Gelu", 5},
                                                           {"FastGelu", 8},
                                                           {"QuickGelu", 5},
                                                           {"BiasGelu", 6},
                                                           {"Swish", 5},
                                                           {"Softmax", 5},
                                                           {"LogSoftmax", 5},
                                                           {"Floor", 1},
                                                           {"Ceil", 1},
                                                           {"Round", 1},
                                                           {"Sign", 1},
                                                           {"Sin", 1},
                                                           {"Cos", 1},
                                                           {"CumSum", 1},
                                                           {"Where", 1},
                                                           {"Equal", 1},
                                                           {"Greater", 1},
                                                           {"Less", 1},
                                                           {"GreaterOrEqual", 1},
                                                           {"LessOrEqual", 1},
                                                           {"And", 1},
                                                           {"Or", 1},
                                                           {"Xor", 1},
                                                           {"Not", 1},
                                                           {"BatchNormalization", 2},
                                                           {"LayerNormalization", 8},
                                                           {"SkipLayerNormalization", 9},
                                                           {"InstanceNormalization", 8},
                                                           {"GroupNormalization", 8},
                                                           {"SimplifiedLayerNormalization", 5},
                                                           {"RMSNormalization", 5},
                                                           {"LpNormalization", 4},
                                                           {"LRN", 8},
                                                           {"Resize", 7},
                                                           {"Upsample", 1},
                                                           {"QuantizeLinear", 2},
                                                           {"DequantizeLinear", 2},
                                                           {"Softsign", 3},
                                                           {"RotaryEmbedding", 3},
                                                           {"IsNaN", 1},
                                                           {"ThresholdedRelu", 1},
                                                           {"Dropout", 0}};
  return table;
}

constexpr auto moves = std::to_array<std::string_view>({"Reshape",
                                                        "Transpose",
                                                        "Flatten",
                                                        "Squeeze",
                                                        "Unsqueeze",
                                                        "Concat",
                                                        "Slice",
                                                        "Gather",
                                                        "GatherND",
                                                        "GatherElements",
                                                        "Expand",
                                                        "Tile",
                                                        "Pad",
                                                        "DepthToSpace",
                                                        "SpaceToDepth",
                                                        "Split",
                                                        "Identity",
                                                        "Cast",
                                                        "CastLike",
                                                        "ConstantOfShape",
                                                        "Range",
                                                        "Constant",
                                                        "Shape",
                                                        "Size",
                                                        "OneHot",
                                                        "ScatterND",
                                                        "ScatterElements",
                                                        "Scatter",
                                                        "Trilu",
                                                        "EyeLike",
                                                        "ReverseSequence",
                                                        "RandomNormalLike",
                                                        "RandomUniformLike",
                                                        "RandomNormal",
                                                        "RandomUniform",
                                                        "Bernoulli"});
constexpr auto views = std::to_array<std::string_view>(
    {"Reshape", "Flatten", "Squeeze", "Unsqueeze", "Identity", "Dropout", "Shape", "Size", "Constant"});
constexpr auto picks = std::to_array<std::string_view>({"Gather", "GatherND", "GatherElements", "Slice"});

template <std::size_t N>
bool one_of(std::string_view op, const std::array<std::string_view, N>& names) {
  return std::find(names.begin(), names.end(), op) != names.end();
}

// Products, convolutions, recurrent cells, attention. < 0: none of these.
double product_flops(const OnnxOperator& op, double outputs) {
  const std::string_view name = op.name();
  const auto a = op.shape(0), b = op.shape(1);
  if (name == "MatMul" || name == "MatMulInteger" || name == "FusedMatMul") {
    return a && !a->empty() ? 2 * outputs * static_cast<double>(a->back()) : 0;
  }
  if (name == "Gemm") {
    return 2 * outputs * dim(a, op.integer("transA", 0) != 0 ? 0 : 1) + (op.given(2) ? outputs : 0);
  }
  if (name == "Conv" || name == "ConvInteger") {
    // A weight is [out, in / group, kernel…].
    const double bias = name == "Conv" && op.given(2) ? outputs : 0;
    return 2 * outputs * dim(b, 1) * kernel_of(b) + bias;
  }
  if (name == "ConvTranspose") {
    // Each input element meets out / group · kernel weights: [in, out / group, kernel…].
    return 2 * count_of(a) * dim(b, 1) * kernel_of(b) + (op.given(2) ? outputs : 0);
  }
  if (name == "LSTM") return recurrent_flops(op, 4);
  if (name == "GRU") return recurrent_flops(op, 3);
  if (name == "RNN") return recurrent_flops(op, 1);
  if (name == "Einsum") return 2 * einsum_volume(op);
  if (name == "Attention") {
    // com.microsoft: projections, then scores and their use, each 2·s²·width per sequence.
    const double tokens = dim(a, 0) * dim(a, 1);
    return 2 * tokens * dim(a, 2) * dim(b, 1) + 4 * tokens * dim(a, 1) * dim(b, 1) / 3;
  }
  return -1;
}

}  // namespace

double onnx_flops(const OnnxOperator& op, const std::vector<OnnxValue>& outputs, bool* counted) {
  *counted = true;
  const double count = outputs.empty() ? 0 : outputs.front().elements();
  const std::string_view name = op.name();
  if (const double flops = product_flops(op, count); flops >= 0) return flops;
  if (const auto at = per_output().find(name); at != per_output().end()) return at->second * count;
  if (name == "Sum" || name == "Mean" || name == "Max" || name == "Min") {
    return count *
           static_cast<double>(std::max<std::size_t>(op.input_count(), 1) - 1 + (name == "Mean" ? 1 : 0));
  }
  if (name == "MaxPool" || name == "AveragePool" || name == "LpPool") return count * window_of(op);
  if (name.substr(0, 6) == "Reduce" || name.substr(0, 6) == "Global" || name == "ArgMax" ||
      name == "ArgMin" || name == "TopK") {
    return count_of(op.shape(0));
  }
  *counted = one_of(name, moves);
  return 0;
}

bool is_view(std::string_view op) {
  return one_of(op, views);
}

double onnx_bytes(const OnnxOperator& op, const OnnxInputs& inputs, const std::vector<OnnxValue>& outputs) {
  if (is_view(op.name())) return 0;
  double written = 0;
  for (const OnnxValue& output : outputs) written += output.bytes();
  if (one_of(op.name(), picks)) {
    const double indices = inputs.size() > 1 ? inputs[1]->bytes() : 0;
    return 2 * written + indices;
  }
  double read = 0;
  for (const OnnxValue* input : inputs) read += input->bytes();
  return read + written;
}

}  // namespace neuroshard::partition::detail
