#include "core/model/script_profile.h"

#include <ATen/ops/ones.h>
#include <torch/csrc/jit/ir/constants.h>

#include <algorithm>

#include "core/model/script_companions.h"
#include "core/model/script_values.h"

namespace neuroshard::model {
namespace {

using torch::jit::Value;
using Environment = std::unordered_map<const Value*, c10::IValue>;

constexpr int launch_runs = 1001;

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

double timed_run(const ScriptProgram& program, std::vector<c10::IValue>& stack,
                 const compute::ScriptHost& host) {
  const std::int64_t start = host.monotonic_nanoseconds();
  program.run(stack);
  return 1e-9 * static_cast<double>(host.monotonic_nanoseconds() - start);
}

// Of a program with one operation on one element, or with none.
double program_seconds(bool with_operation, const compute::ScriptHost& host) {
  auto graph = std::make_shared<torch::jit::Graph>();
  Value* argument = graph->addInput();
  graph->registerOutput(with_operation ? graph->insert(c10::aten::neg, {argument}) : argument);
  const ScriptProgram program(graph);
  std::vector<double> seconds;
  for (int i = 0; i < launch_runs; ++i) {
    std::vector<c10::IValue> stack{at::ones({1})};
    seconds.push_back(timed_run(program, stack, host));
  }
  return median(seconds);
}

class Profiler {
 public:
  Profiler(const ScriptStructure& structure, const compute::ScriptHost& host)
      : structure_(structure), host_(host) {
    const ScriptNodes& operations = structure.operations();
    for (std::size_t i = 0; i < operations.size(); ++i) {
      const auto outputs = operations[i]->outputs();
      sources_.push_back(structure.sources(operations[i]));
      programs_.emplace_back(
          structure.extract({operations[i]}, sources_[i], ScriptValues(outputs.begin(), outputs.end())));
      for (Value* source : sources_[i]) last_use_[source] = i;
    }
    for (Value* result : structure.results()) last_use_[result] = operations.size();
  }

  // Seconds per operation.
  std::vector<double> pass(const std::vector<c10::IValue>& arguments, ScriptProfile* profile) {
    Environment values;
    const auto inputs = structure_.graph()->inputs();
    const std::vector<c10::IValue> fresh = copy_arguments(arguments);
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      values[inputs[i]] = fresh[i];
      if (profile != nullptr) note_value(inputs[i], fresh[i], *profile);
    }
    std::vector<double> seconds;
    for (std::size_t i = 0; i < programs_.size(); ++i) {
      std::vector<c10::IValue> stack;
      for (const Value* source : sources_[i]) stack.push_back(values.at(source));
      seconds.push_back(timed_run(programs_[i], stack, host_));
      const torch::jit::Node& node = *structure_.operations()[i];
      if (profile != nullptr) note_operation(node, values, stack, structure_.is_view(i), *profile);
      for (std::size_t j = 0; j < stack.size(); ++j) {
        if (last_use_.count(node.output(j)) != 0) values[node.output(j)] = std::move(stack[j]);
      }
      for (const Value* source : sources_[i]) {
        if (last_use_.at(source) == i) values.erase(source);
      }
    }
    if (profile != nullptr) note_results(values, *profile);
    return seconds;
  }

 private:
  static void note_value(const Value* value, const c10::IValue& seen, ScriptProfile& profile) {
    profile.bytes[value] = value_bytes(seen);
    std::vector<c10::IValue> leaves;
    flatten(seen, leaves);
    bool scalar = !seen.isList() && !seen.isTuple() && !seen.isGenericDict();
    for (const c10::IValue& leaf : leaves) {
      if (leaf.isTensor()) scalar = scalar && leaf.toTensor().dim() == 0;
    }
    const bool integers = seen.isIntList() || seen.isBoolList();
    profile.scalar[value] = scalar || integers;
  }

  static c10::IValue known(const Environment& values, Value* value) {
    const auto at = values.find(value);
    if (at != values.end()) return at->second;
    if (const auto constant = torch::jit::toIValue(value)) return *constant;
    return {};
  }

  // A list that is folded: the tensors in it.
  static c10::IValue argument_of(const Environment& values, Value* value) {
    const torch::jit::Node* maker = value->node();
    if (maker->kind() != c10::prim::ListConstruct || values.count(value) != 0) return known(values, value);
    std::vector<c10::IValue> items;
    for (const Value* item : maker->inputs()) items.push_back(known(values, const_cast<Value*>(item)));
    return c10::ivalue::Tuple::create(std::move(items));
  }

  static void note_operation(const torch::jit::Node& node, const Environment& values,
                             const std::vector<c10::IValue>& results, bool view, ScriptProfile& profile) {
    std::vector<c10::IValue> arguments;
    for (const Value* input : node.inputs())
      arguments.push_back(argument_of(values, const_cast<Value*>(input)));
    OperationProfile operation;
    operation.cost = operation_cost(node, arguments, results);
    if (view && operation.cost.known) operation.cost.traffic = operation.cost.operations = 0;
    profile.operations.push_back(operation);
    for (std::size_t i = 0; i < results.size(); ++i) note_value(node.output(i), results[i], profile);
  }

  void note_results(const Environment& values, ScriptProfile& profile) const {
    for (Value* result : structure_.results()) {
      std::vector<c10::IValue> leaves;
      flatten(known(values, result), leaves);
      profile.result_leaves.push_back(leaves.size());
    }
  }

  const ScriptStructure& structure_;
  const compute::ScriptHost& host_;
  std::vector<ScriptValues> sources_;
  std::vector<ScriptProgram> programs_;
  std::unordered_map<const Value*, std::size_t> last_use_;
};

}  // namespace

ScriptProfile profile_script(const ScriptStructure& structure, const std::vector<c10::IValue>& arguments,
                             std::uint32_t passes, std::uint32_t companions,
                             const compute::ScriptHost& host) {
  ScriptProfile profile;
  Profiler profiler(structure, host);
  profiler.pass(arguments, &profile);
  const double empty = program_seconds(false, host);
  profile.launch_seconds = std::max(0.0, program_seconds(true, host) - empty);
  std::vector<std::vector<double>> seconds(structure.operations().size());
  const ScriptCompanions beside(structure, arguments, companions);
  for (std::uint32_t i = 0; i < passes; ++i) {
    const std::vector<double> one = profiler.pass(arguments, nullptr);
    for (std::size_t j = 0; j < one.size(); ++j) seconds[j].push_back(one[j]);
  }
  for (std::size_t j = 0; j < seconds.size(); ++j)
    profile.operations[j].seconds = std::max(0.0, median(seconds[j]) - empty);
  return profile;
}

}  // namespace neuroshard::model
