// The graph of a TorchScript model as units that can be placed: what belongs to an operation is folded into
// it, and pieces of the graph become graphs of their own.
//
// Words: a *base* value is an argument of forward() or an output of an operation. Constants, and lists,
// tuples and dictionaries that nobody changes after they were made, are *folded*: every piece that needs one
// makes its own. Control flow (prim::If, prim::Loop) is one operation whatever is inside.
#pragma once

#include <torch/csrc/jit/ir/ir.h>

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

namespace neuroshard::model {

using ScriptGraph = std::shared_ptr<torch::jit::Graph>;
using ScriptValues = std::vector<torch::jit::Value*>;
using ScriptNodes = std::vector<torch::jit::Node*>;

class ScriptStructure {
 public:
  // `graph`: inlined, frozen, without `self`. It is kept and not changed.
  explicit ScriptStructure(ScriptGraph graph);

  const ScriptGraph& graph() const { return graph_; }
  // Operations in their order; folded ones are not among them.
  const ScriptNodes& operations() const { return operations_; }
  bool folded(const torch::jit::Node* node) const { return folded_.count(node) != 0; }

  // Base values that an operation reads, each once, through what is folded and from inside control flow.
  ScriptValues sources(torch::jit::Node* operation) const;
  // Base values that `value` consists of: itself, or, folded, what was put into it.
  void expand(torch::jit::Value* value, ScriptValues& bases) const;
  // Constant tensors that an operation reads, each once.
  std::vector<at::Tensor> constants(torch::jit::Node* operation) const;
  // The model's results, taken out of the tuples, lists and dictionaries that hold them: base values and
  // constants.
  const ScriptValues& results() const { return results_; }

  // Pairs of makers that must share a block: a view with its base, and around each write everything that
  // touches the memory up to that write. (What reads it later gets the final values.)
  const std::vector<std::pair<std::size_t, std::size_t>>& together() const { return together_; }
  // Makers of base values are numbered: arguments first, then operations.
  std::size_t maker(const torch::jit::Value* base) const { return makers_.at(base); }
  std::size_t maker_of_operation(std::size_t operation) const { return arguments_ + operation; }
  std::size_t argument_count() const { return arguments_; }
  // True where the operation's output is a view of, or the same as, one of its sources, and nothing writes.
  bool is_view(std::size_t operation) const { return view_[operation]; }

  // A graph of its own: `operations` in order, with `inputs` (base values) as arguments and `outputs` (base
  // values or constants) as results.
  ScriptGraph extract(const ScriptNodes& operations, const ScriptValues& inputs,
                      const ScriptValues& outputs) const;

 private:
  void find_together();

  ScriptGraph graph_;
  std::unordered_set<const torch::jit::Node*> folded_;
  ScriptNodes operations_;
  ScriptValues results_;
  std::size_t arguments_ = 0;
  std::unordered_map<const torch::jit::Value*, std::size_t> makers_;
  std::vector<std::pair<std::size_t, std::size_t>> together_;
  std::vector<bool> view_;
};

// Reads what `node` takes from outside, also from inside its blocks.
ScriptValues outer_inputs(torch::jit::Node* node);

}  // namespace neuroshard::model
