#include "core/model/script_costs.h"

#include <ATen/core/Tensor.h>

#include <algorithm>
#include <string>

#include "core/model/script_values.h"

namespace neuroshard::model {
namespace {

using Values = std::vector<c10::IValue>;

const at::Tensor* tensor_at(const Values& values, std::size_t i) {
  const bool there = i < values.size() && values[i].isTensor() && values[i].toTensor().defined();
  return there ? &values[i].toTensor() : nullptr;
}

double numel(const at::Tensor& tensor) {
  return static_cast<double>(tensor.numel());
}

double last_size(const at::Tensor& tensor) {
  return tensor.dim() == 0 ? 1 : static_cast<double>(tensor.size(-1));
}

bool is_one_of(const std::string& name, std::initializer_list<const char*> names) {
  return std::any_of(names.begin(), names.end(), [&](const char* n) { return name == n; });
}

// 2·Cin/groups·k² per output; per input when transposed.
double convolution(const Values& arguments, const at::Tensor& output, bool transposed) {
  const at::Tensor* weight = tensor_at(arguments, 1);
  if (weight == nullptr || weight->dim() == 0 || weight->size(0) == 0) return 0;
  const double each = 2 * numel(*weight) / static_cast<double>(weight->size(0));
  return each * numel(transposed ? *tensor_at(arguments, 0) : output);
}

// Layers behind one operator: every matrix meets every row of the input once; attention adds the products of
// rows with rows.
double fused_layer(const Values& arguments, bool attention) {
  const at::Tensor* input = tensor_at(arguments, 0);
  if (input == nullptr || input->dim() < 2 || last_size(*input) == 0) return 0;
  const double rows = numel(*input) / last_size(*input);
  double weights = 0;
  for (std::size_t i = 1; i < arguments.size(); ++i) {
    Values leaves;
    flatten(arguments[i], leaves);
    for (const c10::IValue& leaf : leaves) {
      if (leaf.isTensor() && leaf.toTensor().defined() && leaf.toTensor().dim() == 2)
        weights += numel(leaf.toTensor());
    }
  }
  const double sequence = input->dim() == 3 ? static_cast<double>(input->size(1)) : rows;
  return 2 * rows * weights + (attention ? 4 * rows * sequence * last_size(*input) : 0);
}

double products(const std::string& name, const Values& arguments, const at::Tensor& output) {
  const at::Tensor* first = tensor_at(arguments, 0);
  const at::Tensor* second = tensor_at(arguments, 1);
  if (first == nullptr) return 0;
  if (is_one_of(name, {"aten::linear", "aten::matmul", "aten::mm", "aten::bmm", "aten::mv", "aten::dot"}))
    return 2 * numel(output) * last_size(*first);
  if (is_one_of(name, {"aten::addmm", "aten::baddbmm", "aten::addmv"}) && second != nullptr)
    return 2 * numel(output) * last_size(*second);
  if (is_one_of(name, {"aten::conv1d", "aten::conv2d", "aten::conv3d"}))
    return convolution(arguments, output, false);
  if (name.rfind("aten::conv_transpose", 0) == 0) return convolution(arguments, output, true);
  if (is_one_of(name, {"aten::convolution", "aten::_convolution"}))
    return convolution(arguments, output,
                       arguments.size() > 6 && arguments[6].isBool() && arguments[6].toBool());
  if (is_one_of(name, {"aten::scaled_dot_product_attention", "aten::_scaled_dot_product_attention"}) &&
      second != nullptr && second->dim() >= 2)
    return 4 * numel(*first) * static_cast<double>(second->size(-2));
  if (is_one_of(name, {"aten::_native_multi_head_attention", "aten::_transformer_encoder_layer_fwd"}))
    return fused_layer(arguments, true);
  if (is_one_of(name, {"aten::lstm", "aten::gru", "aten::rnn_tanh", "aten::rnn_relu"}))
    return fused_layer(arguments, false);
  return 0;
}

}  // namespace

ScriptCost operation_cost(const torch::jit::Node& node, const Values& arguments, const Values& results) {
  ScriptCost cost;
  const std::string name = node.kind().toQualString();
  cost.known = node.blocks().empty() && (node.kind().is_aten() || node.kind().is_prim()) &&
               name != "aten::einsum" && name != "aten::tensordot" && name != "aten::bilinear";
  const at::Tensor* output = nullptr;
  for (const c10::IValue& result : results) {
    if (output == nullptr && result.isTensor() && result.toTensor().defined()) output = &result.toTensor();
    Values leaves;
    flatten(result, leaves);
    // Sizes and the like are looked up, not computed from the elements.
    if (!leaves.empty() && leaves[0].isTensor()) cost.traffic += value_bytes(result);
  }
  if (cost.traffic == 0) return cost;
  if (name == "aten::embedding") {
    cost.traffic *= 2;  // rows of the table, not all of it
    return cost;
  }
  for (const c10::IValue& argument : arguments) {
    Values leaves;
    flatten(argument, leaves);
    for (const c10::IValue& leaf : leaves) {
      if (leaf.isTensor()) cost.traffic += value_bytes(leaf);
    }
  }
  if (output != nullptr) cost.operations = products(name, arguments, *output);
  return cost;
}

}  // namespace neuroshard::model
