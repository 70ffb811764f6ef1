#include "core/model/script_units.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "core/model/script_names.h"

namespace neuroshard::model {
namespace {

using torch::jit::Node;
using torch::jit::Value;

constexpr std::size_t longest_name = 80;
// Together less than a header of a message: not worth a node each.
constexpr double small_output = 64;

class Sets {
 public:
  explicit Sets(std::size_t count) : parent_(count) { std::iota(parent_.begin(), parent_.end(), 0u); }
  std::size_t find(std::size_t i) {
    while (parent_[i] != i) i = parent_[i] = parent_[parent_[i]];
    return i;
  }
  // The smaller number stands for both.
  void join(std::size_t a, std::size_t b) {
    a = find(a);
    b = find(b);
    parent_[std::max(a, b)] = std::min(a, b);
  }

 private:
  std::vector<std::size_t> parent_;
};

bool takes_apart(const Node& node) {
  for (const auto kind : {c10::prim::ListUnpack, c10::prim::TupleUnpack, c10::prim::TupleIndex,
                          c10::prim::unchecked_cast, c10::aten::__getitem__}) {
    if (node.kind() == kind) return true;
  }
  return false;
}

std::string operator_name(const Node& node) {
  const std::string name = node.kind().toQualString();
  return name.substr(name.find("::") + 2);
}

class Builder {
 public:
  Builder(const ScriptStructure& structure, const ScriptProfile& profile)
      : structure_(structure),
        profile_(profile),
        names_(structure),
        units_(structure.argument_count() + structure.operations().size()) {
    for (Node* operation : structure.operations()) sources_.push_back(structure.sources(operation));
    result_.node_of_maker.assign(structure.argument_count() + sources_.size(), ScriptUnits::no_node);
  }

  ScriptUnits build() {
    for (std::size_t i = 0; i < sources_.size(); ++i) absorb(i);
    find_outputs();
    for (std::size_t i = 0; i < sources_.size(); ++i)
      members_[units_.find(structure_.maker_of_operation(i))].push_back(i);
    for (std::size_t maker = 0; maker < result_.node_of_maker.size(); ++maker) {
      if (units_.find(maker) == maker) add_unit(maker);
    }
    for (std::size_t maker = 0; maker < result_.node_of_maker.size(); ++maker)
      result_.node_of_maker[maker] = result_.node_of_maker[units_.find(maker)];
    add_groups();
    return std::move(result_);
  }

 private:
  bool is_argument(std::size_t maker) const { return maker < structure_.argument_count(); }

  // Joins an operation that is next to nothing with the only one that it reads from.
  void absorb(std::size_t i) {
    const Node& node = *structure_.operations()[i];
    if (sources_[i].empty()) return;
    // A check ("assert x.size(0) > 1") yields nothing; control flow with results is an operation like others.
    const bool check = !node.blocks().empty() && node.outputs().empty();
    if (!node.blocks().empty() && !check) return;
    const std::size_t unit = units_.find(structure_.maker(sources_[i][0]));
    bool small_in = true;
    for (const Value* source : sources_[i]) {
      if (units_.find(structure_.maker(source)) != unit) return;
      small_in = small_in && profile_.scalar.at(source);
    }
    bool small_out = !node.outputs().empty();
    bool tensor_out = false;
    for (const Value* output : node.outputs()) {
      small_out = small_out && profile_.scalar.at(output);
      tensor_out = tensor_out || output->type()->kind() == c10::TypeKind::TensorType;
    }
    // A tensor with one element may be the result of much work.
    if ((check && small_in) || takes_apart(node) || (small_out && (small_in || !tensor_out)))
      units_.join(unit, structure_.maker_of_operation(i));
  }

  // Base values that another unit reads, by unit, in the order of their makers.
  void find_outputs() {
    for (std::size_t i = 0; i < sources_.size(); ++i) {
      const std::size_t reader = units_.find(structure_.maker_of_operation(i));
      for (Value* source : sources_[i]) {
        const std::size_t unit = units_.find(structure_.maker(source));
        std::vector<Value*>& outputs = outputs_[unit];
        if (unit != reader && std::find(outputs.begin(), outputs.end(), source) == outputs.end())
          outputs.push_back(source);
      }
    }
  }

  void add_unit(std::size_t maker) {
    const bool unused = is_argument(maker) && structure_.graph()->inputs()[maker]->uses().empty();
    if (unused) return;
    const auto index = static_cast<std::uint32_t>(result_.nodes.size());
    result_.node_of_maker[maker] = index;
    ScriptUnitNode node = is_argument(maker) ? argument_node(maker) : operation_node(maker);
    std::vector<Value*> large, small;
    for (Value* output : outputs_[maker])
      (profile_.bytes.at(output) > small_output ? large : small).push_back(output);
    // The node's own output; the rest gets nodes of its own.
    std::vector<std::vector<Value*>> carried;
    for (Value* output : large) carried.push_back({output});
    if (!small.empty()) carried.push_back(small);
    const std::string id = node.id;
    const bool alone = carried.size() == 1 || (carried.size() == 2 && large.size() == 1);
    if (alone) carry(carried[0], index, node);
    result_.nodes.push_back(std::move(node));
    std::vector<std::uint32_t> group{index};
    for (std::size_t i = alone ? 1 : 0; i < carried.size(); ++i) {
      ScriptUnitNode output;
      output.id = id + " out " + std::to_string(i + 1);
      output.op = "output";
      output.inputs = {index};
      group.push_back(static_cast<std::uint32_t>(result_.nodes.size()));
      carry(carried[i], group.back(), output);
      result_.nodes.push_back(std::move(output));
    }
    if (group.size() > 1) outputs_of_unit_[index] = std::move(group);
  }

  void carry(const std::vector<Value*>& values, std::uint32_t index, ScriptUnitNode& node) {
    for (const Value* value : values) {
      node.output_bytes += profile_.bytes.at(value);
      carrier_[value] = index;
    }
  }

  ScriptUnitNode argument_node(std::size_t maker) {
    ScriptUnitNode node;
    node.id = std::to_string(maker) + " input " + structure_.graph()->inputs()[maker]->debugNameBase();
    node.op = "input";
    add_operations(maker, node);
    return node;
  }

  ScriptUnitNode operation_node(std::size_t maker) {
    ScriptUnitNode node;
    const Node& first = *structure_.operations()[maker - structure_.argument_count()];
    node.op = first.kind().toQualString();
    const std::string place = names_.place(first);
    node.id = std::to_string(maker) + " " + (place.empty() ? "" : place + " ") + operator_name(first);
    if (node.id.size() > longest_name) node.id.resize(longest_name);
    add_operations(maker, node);
    return node;
  }

  // Costs and inputs of the operations of a unit.
  void add_operations(std::size_t unit, ScriptUnitNode& node) {
    std::vector<at::Tensor> parameters;
    for (const std::size_t i : members_[unit]) {
      const OperationProfile& operation = profile_.operations[i];
      node.operations += operation.cost.operations;
      node.traffic += operation.cost.traffic;
      node.seconds += operation.seconds;
      const bool check = structure_.operations()[i]->outputs().empty() && members_[unit].size() > 1;
      node.timed_only = node.timed_only || (!operation.cost.known && !check);
      for (const at::Tensor& tensor : structure_.constants(structure_.operations()[i])) {
        const bool counted = std::any_of(parameters.begin(), parameters.end(),
                                         [&](const at::Tensor& other) { return other.is_same(tensor); });
        if (counted) continue;
        parameters.push_back(tensor);
        node.param_bytes += static_cast<double>(tensor.nbytes());
      }
      for (const Value* source : sources_[i]) {
        const auto at = carrier_.find(source);
        if (at != carrier_.end() && units_.find(structure_.maker(source)) != unit)
          node.inputs.push_back(at->second);
      }
    }
    std::sort(node.inputs.begin(), node.inputs.end());
    node.inputs.erase(std::unique(node.inputs.begin(), node.inputs.end()), node.inputs.end());
  }

  void add_groups() {
    Sets sets(result_.nodes.size());
    for (const auto& [a, b] : structure_.together()) {
      const std::uint32_t first = result_.node_of_maker[a], second = result_.node_of_maker[b];
      if (first != ScriptUnits::no_node && second != ScriptUnits::no_node) sets.join(first, second);
    }
    for (const auto& [index, nodes] : outputs_of_unit_) {
      for (const std::uint32_t node : nodes) sets.join(index, node);
    }
    std::map<std::size_t, std::vector<std::uint32_t>> members;
    for (std::uint32_t i = 0; i < result_.nodes.size(); ++i) members[sets.find(i)].push_back(i);
    for (auto& [first, nodes] : members) {
      if (nodes.size() > 1) result_.groups.push_back(std::move(nodes));
    }
  }

  const ScriptStructure& structure_;
  const ScriptProfile& profile_;
  ScriptNames names_;
  Sets units_;  // of makers
  std::vector<ScriptValues> sources_;
  std::map<std::size_t, std::vector<std::size_t>> members_;  // operations by unit
  std::map<std::size_t, std::vector<Value*>> outputs_;
  std::map<std::uint32_t, std::vector<std::uint32_t>> outputs_of_unit_;
  std::unordered_map<const Value*, std::uint32_t> carrier_;
  ScriptUnits result_;
};

}  // namespace

ScriptUnits make_units(const ScriptStructure& structure, const ScriptProfile& profile) {
  return Builder(structure, profile).build();
}

}  // namespace neuroshard::model
