#include "core/partition/import/onnx_import.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <unordered_set>

#include "core/base/utf8.h"
#include "core/partition/import/detail/onnx_costs.h"
#include "core/partition/import/onnx_shapes.h"

namespace neuroshard::partition {
namespace {

using detail::OnnxOperator;

constexpr std::size_t shown_names = 5;

// Names in the message are those of a foreign file.
Error invalid(const std::string& message) {
  return make_error(ErrorCode::InvalidArgument, one_line(message));
}

// Names that a nested graph takes from around it.
void outer_names(const OnnxGraph& graph, std::set<std::string>* names) {
  std::unordered_set<std::string> own;
  for (const auto& [name, type] : graph.inputs) own.insert(name);
  for (const OnnxTensor& tensor : graph.initializers) own.insert(tensor.name);
  for (const OnnxNode& node : graph.nodes) own.insert(node.outputs.begin(), node.outputs.end());
  const auto use = [&](const std::string& name) {
    if (!name.empty() && own.count(name) == 0) names->insert(name);
  };
  for (const OnnxNode& node : graph.nodes) {
    for (const std::string& input : node.inputs) use(input);
    for (const auto& [key, attribute] : node.attributes) {
      std::set<std::string> inner;
      for (const auto& nested : attribute.graphs) outer_names(*nested, &inner);
      for (const std::string& name : inner) use(name);
    }
  }
  for (const auto& [name, type] : graph.outputs) use(name);
}

double nested_weights(const OnnxGraph& graph) {
  double bytes = 0;
  for (const OnnxTensor& tensor : graph.initializers) {
    OnnxValue value;
    value.type = tensor.type;
    value.shape = tensor.dims;
    bytes += value.bytes();
  }
  for (const OnnxNode& node : graph.nodes) {
    for (const auto& [key, attribute] : node.attributes) {
      for (const auto& nested : attribute.graphs) bytes += nested_weights(*nested);
    }
  }
  return bytes;
}

class Importer {
 public:
  Importer(const OnnxModel& model, const OnnxOptions& options) : model_(model), options_(options) {}
  Expected<CostedGraph> run();
  Expected<OnnxValues> infer_all();

 private:
  Expected<void> read_values();
  Expected<OnnxShape> fixed(const std::string& name, const OnnxTensorType& type) const;
  Expected<void> order_nodes();
  Expected<void> infer_nodes();
  void infer(const OnnxNode& node);
  void add(const OnnxNode& node);
  void read_tensor(const std::string& name, const OnnxValue& value, GraphNode* result);
  OnnxInputs inputs_of(const OnnxNode& node) const;
  void bound_folding(OnnxValue* output);
  std::string unique_id(const OnnxNode& node);
  Expected<void> unknown_shapes() const;

  const OnnxModel& model_;
  const OnnxOptions& options_;
  OnnxValues values_;
  const OnnxValue left_out_{};
  std::size_t folded_ = 0;  // integers of constant outputs
  std::unordered_map<std::string, OnnxTensorType> stated_;
  std::vector<const OnnxNode*> order_;
  std::unordered_map<std::string, std::uint32_t> maker_;  // node of the result that makes a tensor
  std::unordered_map<std::string, std::size_t> readers_;  // how many operators read a tensor
  std::unordered_set<std::string> ids_;
  std::unordered_map<std::string, std::size_t> next_number_;  // of the operators of one name
  std::vector<std::pair<std::string, std::string>> unknown_;  // tensor, operator
  std::set<std::string> uncounted_;
  CostedGraph result_;
};

// A stated shape with the user's sizes for open dimensions; no shape where one is missing.
Expected<OnnxShape> Importer::fixed(const std::string& name, const OnnxTensorType& type) const {
  OnnxShape shape;
  for (std::size_t i = 0; i < type.dims.size(); ++i) {
    const OnnxDimension& dim = type.dims[i];
    std::int64_t size = dim.size;
    if (size < 0) {
      auto given = options_.dimensions.find(fmt::format("{}:{}", name, i));
      if (given == options_.dimensions.end() && !dim.name.empty()) given = options_.dimensions.find(dim.name);
      if (given == options_.dimensions.end()) {
        return invalid(fmt::format("dimension {} of input \"{}\" is open; give its size: --dim {}=N", i, name,
                                   dim.name.empty() ? fmt::format("{}:{}", name, i) : dim.name));
      }
      size = given->second;
    }
    shape.push_back(size);
  }
  if (!is_sensible(shape)) return invalid(fmt::format("the shape of \"{}\" is larger than any tensor", name));
  return shape;
}

Expected<void> Importer::read_values() {
  for (const OnnxTensor& tensor : model_.graph.initializers) {
    OnnxValue value;
    if (!is_sensible(tensor.dims)) {
      return invalid(fmt::format("the shape of weight \"{}\" is larger than any tensor", tensor.name));
    }
    value.type = tensor.type;
    value.shape = tensor.dims;
    value.constant = true;
    if (tensor.has_values) value.integers = tensor.integers;
    value.reals = tensor.reals;
    values_.insert_or_assign(tensor.name, std::move(value));
  }
  for (const auto& [name, type] : model_.graph.inputs) {
    if (values_.count(name) > 0) continue;  // an old file lists its weights as inputs as well
    OnnxValue value;
    value.type = type.type;
    if (type.has_shape) {
      NS_ASSIGN_OR_RETURN(value.shape, fixed(name, type));
    }
    if (!value.shape) unknown_.emplace_back(name, "the model's input");
    values_.insert_or_assign(name, std::move(value));
  }
  for (const auto& [name, type] : model_.graph.values) stated_.insert_or_assign(name, type);
  for (const auto& [name, type] : model_.graph.outputs) stated_.insert_or_assign(name, type);
  return {};
}

// All names that a node reads, nested graphs included.
std::vector<std::string> names_read(const OnnxNode& node) {
  std::vector<std::string> names;
  for (const std::string& name : node.inputs) {
    if (!name.empty()) names.push_back(name);
  }
  std::set<std::string> nested;
  for (const auto& [key, attribute] : node.attributes) {
    for (const auto& graph : attribute.graphs) outer_names(*graph, &nested);
  }
  names.insert(names.end(), nested.begin(), nested.end());
  return names;
}

// Files should be in order; Kahn's algorithm tells cycles and missing tensors whether they are or not.
Expected<void> Importer::order_nodes() {
  const auto& nodes = model_.graph.nodes;
  std::unordered_map<std::string, std::size_t> makers;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    for (const std::string& name : nodes[i].outputs) {
      if (name.empty()) continue;
      if (!makers.try_emplace(name, i).second || values_.count(name) > 0)
        return invalid(fmt::format("tensor \"{}\" has two producers", name));
    }
  }
  std::vector<std::size_t> missing(nodes.size()), ready;
  std::vector<std::vector<std::size_t>> readers(nodes.size());
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    for (const std::string& name : names_read(nodes[i])) {
      const auto maker = makers.find(name);
      if (maker == makers.end()) {
        if (values_.count(name) == 0) {
          return invalid(fmt::format("operator \"{}\" ({}) reads \"{}\", which has no producer",
                                     nodes[i].name, nodes[i].op, name));
        }
        continue;
      }
      ++missing[i];
      ++readers_[name];
      readers[maker->second].push_back(i);
    }
    if (missing[i] == 0) ready.push_back(i);
  }
  std::reverse(ready.begin(), ready.end());
  while (!ready.empty()) {
    const std::size_t i = ready.back();
    ready.pop_back();
    order_.push_back(&nodes[i]);
    for (const std::size_t reader : readers[i]) {
      if (--missing[reader] == 0) ready.push_back(reader);
    }
  }
  if (order_.size() == nodes.size()) return {};
  const auto stuck =
      std::find_if(missing.begin(), missing.end(), [](std::size_t count) { return count > 0; });
  return invalid(fmt::format("the model has a cycle near operator \"{}\"",
                             nodes[static_cast<std::size_t>(stuck - missing.begin())].name));
}

// Valid while values_ loses none.
OnnxInputs Importer::inputs_of(const OnnxNode& node) const {
  OnnxInputs inputs;
  for (const std::string& name : node.inputs) {
    const auto at = values_.find(name);
    inputs.push_back(name.empty() || at == values_.end() ? &left_out_ : &at->second);
  }
  return inputs;
}

// A small file can have many operators that each make a long constant.
void Importer::bound_folding(OnnxValue* output) {
  if (!output->integers) return;
  if (output->integers->size() > max_onnx_folded - folded_) {
    output->integers.reset();
  } else {
    folded_ += output->integers->size();
  }
}

void Importer::infer(const OnnxNode& node) {
  const OnnxInputs inputs = inputs_of(node);
  std::vector<OnnxValue> outputs = infer_outputs(node, inputs, model_.opset);
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (node.outputs[i].empty()) continue;
    bound_folding(&outputs[i]);
    const auto stated = stated_.find(node.outputs[i]);
    if (stated != stated_.end()) {
      if (outputs[i].type == OnnxType::Undefined) outputs[i].type = stated->second.type;
      if (!outputs[i].shape && stated->second.has_shape) {
        auto shape = fixed(node.outputs[i], stated->second);
        if (shape.ok()) outputs[i].shape = *shape;
      }
    }
    if (!outputs[i].shape && unknown_.size() <= shown_names) {
      unknown_.emplace_back(node.outputs[i], fmt::format("operator \"{}\" ({})", node.name, node.op));
    }
    values_.insert_or_assign(node.outputs[i], std::move(outputs[i]));
  }
}

Expected<void> Importer::unknown_shapes() const {
  if (unknown_.empty()) return {};
  std::string list;
  for (std::size_t i = 0; i < std::min(unknown_.size(), shown_names); ++i) {
    list += fmt::format("{}\"{}\" of {}", i > 0 ? ", " : "", unknown_[i].first, unknown_[i].second);
  }
  return invalid(
      fmt::format("the shapes of these tensors are not known: {}{}; store them in the file (for example with "
                  "onnx.shape_inference.infer_shapes) or export the model with fixed shapes",
                  list, unknown_.size() > shown_names ? ", …" : ""));
}

std::string Importer::unique_id(const OnnxNode& node) {
  std::string base = !node.name.empty() ? node.name : node.outputs.empty() ? node.op : node.outputs[0];
  if (base.empty()) base = "operator";
  base = valid_utf8(base, max_id_length - 16);
  if (ids_.insert(base).second) return base;
  std::size_t& number = next_number_.try_emplace(base, 2).first->second;
  std::string id;
  do {
    id = fmt::format("{} #{}", base, number++);
  } while (!ids_.insert(id).second);
  return id;
}

// One operator reads a tensor: an edge from its maker, or a parameter.
void Importer::read_tensor(const std::string& name, const OnnxValue& value, GraphNode* result) {
  if (const auto maker = maker_.find(name); maker != maker_.end()) {
    result->inputs.push_back(maker->second);
  } else if (value.constant) {
    result->param_bytes += value.bytes();
  }
}

void Importer::add(const OnnxNode& node) {
  const OnnxInputs inputs = inputs_of(node);
  std::vector<OnnxValue> outputs;
  bool all_constant = !node.outputs.empty();
  for (const std::string& name : node.outputs) {
    outputs.push_back(name.empty() ? OnnxValue() : values_[name]);
    all_constant = all_constant && (name.empty() || outputs.back().constant);
  }
  if (all_constant) return;
  GraphNode result;
  result.id = unique_id(node);
  result.op = valid_utf8(node.op, max_id_length);
  std::vector<std::string> names = names_read(node);
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  for (const std::string& name : names) read_tensor(name, values_[name], &result);
  for (const auto& [key, attribute] : node.attributes) {
    for (const auto& graph : attribute.graphs) result.param_bytes += nested_weights(*graph);
  }
  std::sort(result.inputs.begin(), result.inputs.end());
  result.inputs.erase(std::unique(result.inputs.begin(), result.inputs.end()), result.inputs.end());

  const OnnxOperator op(node, inputs, model_.opset);
  OperationCost cost;
  bool counted = true;
  cost.flops = detail::onnx_flops(op, outputs, &counted);
  cost.bytes = detail::onnx_bytes(op, inputs, outputs);
  if (!counted) uncounted_.insert(node.op);
  std::vector<std::size_t> read;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (readers_.count(node.outputs[i]) > 0) read.push_back(i);
  }
  const auto own = static_cast<std::uint32_t>(result_.graph.nodes.size());
  const bool ports = read.size() > 1;
  if (!ports && !outputs.empty()) result.output_bytes = outputs[read.empty() ? 0 : read[0]].bytes();
  for (const std::string& name : node.outputs) maker_[name] = own;
  result_.graph.nodes.push_back(std::move(result));
  result_.costs.push_back(cost);
  if (!ports) return;
  std::vector<std::uint32_t> together{own};
  for (const std::size_t i : read) {
    GraphNode port;
    OnnxNode naming;
    naming.name = fmt::format("{}:{}", valid_utf8(result_.graph.nodes[own].id, max_id_length - 40), i);
    port.id = unique_id(naming);
    port.op = "output";
    port.output_bytes = outputs[i].bytes();
    port.inputs = {own};
    maker_[node.outputs[i]] = static_cast<std::uint32_t>(result_.graph.nodes.size());
    together.push_back(maker_[node.outputs[i]]);
    result_.graph.nodes.push_back(std::move(port));
    result_.costs.emplace_back();
  }
  result_.graph.colocated.push_back(std::move(together));
}

Expected<void> Importer::infer_nodes() {
  NS_RETURN_IF_ERROR(read_values());
  NS_RETURN_IF_ERROR(order_nodes());
  for (const OnnxNode* node : order_) infer(*node);
  return {};
}

Expected<OnnxValues> Importer::infer_all() {
  NS_RETURN_IF_ERROR(infer_nodes());
  return values_;
}

Expected<CostedGraph> Importer::run() {
  NS_RETURN_IF_ERROR(infer_nodes());
  NS_RETURN_IF_ERROR(unknown_shapes());
  for (const OnnxNode* node : order_) add(*node);
  result_.graph.convention =
      "ONNX model: operators of one forward pass; weights count at each operator that reads them";
  if (!uncounted_.empty()) {
    std::string list;
    for (const std::string& op : uncounted_) list += (list.empty() ? "" : ", ") + valid_utf8(op, 40);
    result_.graph.convention += "; by their bytes alone: " + valid_utf8(list, 400);
  }
  NS_RETURN_IF_ERROR(validate(result_.graph));
  return std::move(result_);
}

}  // namespace

bool is_onnx(ByteSpan head) {
  // Writers begin with ir_version (a small number), rarely with the producer.
  if (head.size() < 4) return false;
  if (head[0] == 0x08) return head[1] > 0 && head[1] < 0x40;
  return head[0] == 0x12 && head[1] + std::size_t{2} < head.size() && head[1] < 0x80;
}

namespace {

Expected<OnnxModel> parse_bounded(ByteSpan bytes) {
  if (bytes.size() > max_onnx_file_bytes) {
    return make_error(ErrorCode::Exhausted,
                      fmt::format("the ONNX file has {} bytes; the most is {}: keep the weights beside it "
                                  "(external data), they are not needed",
                                  bytes.size(), max_onnx_file_bytes));
  }
  return parse_onnx(bytes);
}

}  // namespace

Expected<CostedGraph> import_onnx(ByteSpan bytes, const OnnxOptions& options) {
  NS_ASSIGN_OR_RETURN(const OnnxModel model, parse_bounded(bytes));
  return Importer(model, options).run();
}

Expected<OnnxValues> infer_onnx(ByteSpan bytes, const OnnxOptions& options) {
  NS_ASSIGN_OR_RETURN(const OnnxModel model, parse_bounded(bytes));
  return Importer(model, options).infer_all();
}

}  // namespace neuroshard::partition
