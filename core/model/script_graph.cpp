#include "core/model/script_graph.h"

#include <torch/csrc/jit/ir/alias_analysis.h>
#include <torch/csrc/jit/ir/constants.h>

#include <algorithm>

namespace neuroshard::model {
namespace {

using torch::jit::AliasDb;
using torch::jit::Block;
using torch::jit::Node;
using torch::jit::Value;

bool is_construction(const Node* node) {
  return node->kind() == c10::prim::ListConstruct || node->kind() == c10::prim::TupleConstruct ||
         node->kind() == c10::prim::DictConstruct;
}

void gather_outer(const Block* home, Node* node, ScriptValues& values) {
  const auto add = [&](Value* value) {
    if (value->node()->owningBlock() != home) return;  // made inside
    if (std::find(values.begin(), values.end(), value) == values.end()) values.push_back(value);
  };
  for (Value* value : node->inputs()) add(value);
  for (Block* block : node->blocks()) {
    for (Node* inner : block->nodes()) gather_outer(home, inner, values);
    for (Value* value : block->outputs()) add(value);
  }
}

}  // namespace

ScriptValues outer_inputs(Node* node) {
  ScriptValues values;
  gather_outer(node->owningBlock(), node, values);
  return values;
}

ScriptStructure::ScriptStructure(ScriptGraph graph) : graph_(std::move(graph)) {
  const AliasDb aliases(graph_);
  for (Node* node : graph_->nodes()) {
    const bool fold =
        node->kind() == c10::prim::Constant || (is_construction(node) && !aliases.hasOutputWriters(node));
    if (fold) {
      folded_.insert(node);
    } else {
      operations_.push_back(node);
    }
  }
  for (Value* argument : graph_->inputs()) makers_[argument] = arguments_++;
  for (std::size_t i = 0; i < operations_.size(); ++i) {
    for (Value* output : operations_[i]->outputs()) makers_[output] = maker_of_operation(i);
  }
  const auto take_apart = [&](auto&& self, Value* value) -> void {
    Node* maker = value->node();
    if (folded(maker) && is_construction(maker)) {
      const bool dictionary = maker->kind() == c10::prim::DictConstruct;
      for (std::size_t i = dictionary ? 1 : 0; i < maker->inputs().size(); i += dictionary ? 2 : 1)
        self(self, maker->input(i));
    } else {
      results_.push_back(value);
    }
  };
  for (Value* output : graph_->outputs()) take_apart(take_apart, output);
  find_together();
}

void ScriptStructure::expand(Value* value, ScriptValues& bases) const {
  if (!folded(value->node())) {
    if (std::find(bases.begin(), bases.end(), value) == bases.end()) bases.push_back(value);
    return;
  }
  for (Value* input : value->node()->inputs()) expand(input, bases);
}

ScriptValues ScriptStructure::sources(Node* operation) const {
  ScriptValues bases;
  for (Value* value : outer_inputs(operation)) expand(value, bases);
  return bases;
}

std::vector<at::Tensor> ScriptStructure::constants(Node* operation) const {
  std::vector<at::Tensor> tensors;
  const auto add = [&](const at::Tensor& tensor) {
    const bool known = std::any_of(tensors.begin(), tensors.end(),
                                   [&](const at::Tensor& other) { return other.is_same(tensor); });
    if (tensor.defined() && !known) tensors.push_back(tensor);
  };
  const auto add_node = [&](auto&& self, Node* node) -> void {
    if (node->kind() == c10::prim::Constant && node->hasAttribute(c10::attr::value) &&
        node->kindOf(c10::attr::value) == torch::jit::AttributeKind::t) {
      add(node->t(c10::attr::value));
    }
    if (folded(node)) {
      for (Value* input : node->inputs()) self(self, input->node());
    }
    for (Block* block : node->blocks()) {
      for (Node* inner : block->nodes()) self(self, inner);
    }
  };
  for (Value* value : outer_inputs(operation)) {
    if (folded(value->node())) add_node(add_node, value->node());
  }
  add_node(add_node, operation);
  return tensors;
}

void ScriptStructure::find_together() {
  const AliasDb aliases(graph_);
  view_.assign(operations_.size(), false);
  std::vector<ScriptValues> read;
  for (Node* operation : operations_) read.push_back(sources(operation));
  for (std::size_t i = 0; i < operations_.size(); ++i) {
    for (Value* source : read[i]) {
      for (Value* output : operations_[i]->outputs()) {
        if (!aliases.mayContainAlias(output, source)) continue;
        together_.emplace_back(maker(source), maker_of_operation(i));
        view_[i] = true;
      }
    }
  }
  std::vector<std::pair<Value*, std::size_t>> changing;
  for (const auto& [value, position] : makers_) {
    if (aliases.hasWriters(value)) changing.emplace_back(const_cast<Value*>(value), position);
  }
  for (std::size_t w = 0; w < operations_.size() && !changing.empty(); ++w) {
    // Control flow writes where one of the operations inside does.
    const auto writes = [&](Value* value) { return aliases.writesToAlias(operations_[w], {value}); };
    std::unordered_set<const Value*> written;
    for (const auto& [value, position] : changing) {
      if (position <= maker_of_operation(w) && writes(value)) written.insert(value);
    }
    if (written.empty()) continue;
    view_[w] = false;
    const std::size_t writer = maker_of_operation(w);
    for (const Value* value : written) together_.emplace_back(maker(value), writer);
    for (std::size_t i = 0; i < w; ++i) {
      const bool touches =
          std::any_of(read[i].begin(), read[i].end(), [&](Value* v) { return written.count(v) != 0; });
      if (touches) together_.emplace_back(maker_of_operation(i), writer);
    }
  }
}

ScriptGraph ScriptStructure::extract(const ScriptNodes& operations, const ScriptValues& inputs,
                                     const ScriptValues& outputs) const {
  auto piece = std::make_shared<torch::jit::Graph>();
  std::unordered_map<Value*, Value*> inside;
  for (Value* input : inputs) {
    Value* argument = piece->addInput();
    // Without the shapes that were seen while tracing: they would be taken for promises.
    const bool tensor = input->type()->kind() == c10::TypeKind::TensorType;
    argument->setType(tensor ? c10::TypePtr(c10::TensorType::get()) : input->type());
    inside[input] = argument;
  }
  const auto find = [&](Value* value) { return inside.at(value); };
  const auto clone = [&](Node* node) {
    Node* copy = piece->insertNode(piece->createClone(node, find));
    for (std::size_t i = 0; i < node->outputs().size(); ++i) inside[node->output(i)] = copy->output(i);
  };
  const auto prepare = [&](auto&& self, Value* value) -> void {
    if (inside.count(value) != 0) return;
    Node* maker = value->node();
    TORCH_CHECK(folded(maker), "a value of the cut model comes from nowhere");
    for (Value* input : maker->inputs()) self(self, input);
    clone(maker);
  };
  for (Node* operation : operations) {
    for (Value* value : outer_inputs(operation)) prepare(prepare, value);
    clone(operation);
  }
  for (Value* output : outputs) {
    prepare(prepare, output);
    piece->registerOutput(find(output));
  }
  return piece;
}

}  // namespace neuroshard::model
