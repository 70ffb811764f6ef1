#include "core/model/script_file.h"

#include <caffe2/serialize/inline_container.h>
#include <caffe2/serialize/read_adapter_interface.h>
#include <torch/csrc/jit/ir/constants.h>
#include <torch/csrc/jit/passes/constant_propagation.h>
#include <torch/csrc/jit/passes/dead_code_elimination.h>
#include <torch/csrc/jit/passes/freeze_module.h>
#include <torch/csrc/jit/passes/inliner.h>
#include <torch/csrc/jit/passes/lower_tuples.h>
#include <torch/csrc/jit/passes/remove_mutation.h>
#include <torch/csrc/jit/runtime/interpreter.h>
#include <torch/csrc/jit/serialization/import.h>

#include <cstring>
#include <sstream>

#include "core/model/boundary.h"
#include "core/model/memory_pool.h"
#include "core/model/script_values.h"

namespace neuroshard::model {
namespace {

constexpr char how_to_save[] = "save the model with torch.jit.script(model).save(\"model.pt\")";

class HostFile final : public caffe2::serialize::ReadAdapterInterface {
 public:
  explicit HostFile(const compute::ScriptHost& host) : host_(host) {}
  size_t size() const override { return host_.file_bytes(); }
  size_t read(uint64_t offset, void* target, size_t bytes, const char* /*what*/) const override {
    const std::uint64_t size = host_.file_bytes();
    if (offset > size || bytes > size - offset)
      throw ScriptError(ErrorCode::Corrupt, "The model file ends early.");
    if (const compute::Status status = host_.read(offset, target, bytes); !status.ok())
      throw ScriptError(static_cast<ErrorCode>(status.code - 1), status.message);
    return bytes;
  }

 private:
  const compute::ScriptHost& host_;
};

// LibTorch's texts go on with where in its own sources, and what else it tried.
std::string first_line(const char* text) {
  const std::string all(text);
  const std::string line = all.substr(0, all.find('\n'));
  constexpr std::size_t longest = 200;
  return line.size() > longest ? line.substr(0, longest) + "…" : line;
}

// In TorchScript's runtime errors the reason stands last, after a trace of the model's source.
std::string reason(const std::exception& error) {
  const std::string all(error.what());
  const std::size_t at = all.rfind("RuntimeError: ");
  return first_line(at == std::string::npos ? error.what()
                                            : all.c_str() + at + std::strlen("RuntimeError: "));
}

compute::Status failed(ErrorCode code, const char* what, const std::string& why) {
  return failure(code, (std::string(what) + " failed: " + why).c_str());
}

std::shared_ptr<HostFile> checked_file(const compute::ScriptHost& host) {
  if (host.file_bytes() > compute::max_script_file_bytes)
    throw ScriptError(ErrorCode::Exhausted, "The model file is larger than 64 GiB.");
  auto file = std::make_shared<HostFile>(host);
  bool script = false;
  try {
    caffe2::serialize::PyTorchStreamReader archive(file);
    script = archive.hasRecord("constants.pkl") && archive.hasRecord("data.pkl");
  } catch (const c10::Error& error) {
    throw ScriptError(ErrorCode::Corrupt, std::string("This is not a TorchScript file, or it is damaged; ") +
                                              how_to_save + ". (" +
                                              first_line(error.what_without_backtrace()) + ")");
  }
  if (!script) {
    throw ScriptError(ErrorCode::Corrupt, std::string("This archive holds no TorchScript program (a plain "
                                                      "torch.save holds weights only); ") +
                                              how_to_save + ".");
  }
  return file;
}

void check_plain(const torch::jit::Block* block) {
  for (const torch::jit::Node* node : block->nodes()) {
    for (const auto kind : {c10::prim::GetAttr, c10::prim::SetAttr, c10::prim::CallMethod,
                            c10::prim::CallFunction, c10::prim::fork, c10::prim::CreateObject}) {
      if (node->kind() != kind) continue;
      throw ScriptError(ErrorCode::Unsupported,
                        std::string("The model uses ") + kind.toDisplayString() +
                            " where it runs: it keeps state, makes objects or starts tasks, and such a model "
                            "can't be cut into processes.");
    }
    for (const torch::jit::Block* inner : node->blocks()) check_plain(inner);
  }
}

// The elements of the tuple that write_piece() returns. LibTorch makes a tuple of constants, which is all
// that a block without results has, a constant itself.
ScriptValues tuple_items(torch::jit::Graph& graph, torch::jit::Value* tuple) {
  torch::jit::Node* maker = tuple->node();
  if (maker->kind() == c10::prim::TupleConstruct) return {maker->inputs().begin(), maker->inputs().end()};
  const c10::optional<c10::IValue> constant = torch::jit::toIValue(tuple);
  if (!constant || !constant->isTuple())
    throw ScriptError(ErrorCode::Corrupt, "This is not a block of a cut model.");
  ScriptValues items;
  for (const c10::IValue& item : constant->toTupleRef().elements())
    items.push_back(graph.insertConstant(item));
  return items;
}

}  // namespace

compute::Status guarded_script(const char* what, const std::function<void()>& call) noexcept {
  return guarded(1, [&]() -> compute::Status {
    try {
      call();
      return success();
    } catch (const ScriptError& error) {
      return failure(error.code(), error.what());
    } catch (const ScriptMessageError& error) {
      return failure(ErrorCode::Corrupt, error.what());
    } catch (const std::bad_alloc&) {
      throw;  // guarded() knows the limits
    } catch (const c10::Error& error) {
      return failed(ErrorCode::InvalidArgument, what, first_line(error.what_without_backtrace()));
    } catch (const std::exception& error) {
      return failed(ErrorCode::InvalidArgument, what, reason(error));
    }
  });
}

torch::jit::Module read_script(const compute::ScriptHost& host) {
  torch::jit::Module module = torch::jit::load(checked_file(host), c10::Device(c10::DeviceType::CPU));
  module.eval();
  if (!module.find_method("forward"))
    throw ScriptError(ErrorCode::InvalidArgument, "The model has no method forward().");
  return module;
}

ScriptGraph freeze_script(const torch::jit::Module& module) {
  const torch::jit::Module frozen = torch::jit::freeze_module(module);
  ScriptGraph graph = torch::jit::toGraphFunction(frozen.get_method("forward").function()).graph()->copy();
  torch::jit::Inline(*graph);
  torch::jit::RemoveListMutation(graph);
  torch::jit::RemoveTensorMutation(graph);
  torch::jit::ConstantPropagation(graph);
  torch::jit::LowerSimpleTuples(graph);
  torch::jit::EliminateDeadCode(graph);
  check_plain(graph->block());
  if (graph->inputs()[0]->hasUses())
    throw ScriptError(ErrorCode::Unsupported, "The model keeps state; it can't be cut into processes.");
  graph->eraseInput(0);
  std::size_t nodes = 0;
  for (const torch::jit::Node* node : graph->nodes()) nodes += node != nullptr ? 1 : 0;
  if (nodes > compute::max_script_nodes)
    throw ScriptError(ErrorCode::Exhausted, "The model has more than 100,000 operations.");
  return graph;
}

std::string write_piece(const torch::jit::Graph& piece) {
  torch::jit::Module module(c10::QualifiedName("__torch__.NeuroshardBlock"));
  std::shared_ptr<torch::jit::Graph> graph = const_cast<torch::jit::Graph&>(piece).copy();
  graph->insertInput(0, "self")->setType(module.type());
  ScriptValues results(graph->outputs().begin(), graph->outputs().end());
  // A file needs a result.
  if (results.empty()) results.push_back(graph->insertConstant(0));
  torch::jit::Node* tuple = graph->insertNode(graph->createTuple(results));
  while (!graph->outputs().empty()) graph->eraseOutput(graph->outputs().size() - 1);
  graph->registerOutput(tuple->output());
  auto* forward = module._ivalue()->compilation_unit()->create_function(
      c10::QualifiedName(*module.type()->name(), "forward"), graph);
  module.type()->addMethod(forward);
  std::ostringstream file;
  module.save(file);
  return file.str();
}

ScriptGraph read_piece(const compute::ScriptHost& host) {
  const torch::jit::Module module = read_script(host);
  ScriptGraph graph = torch::jit::toGraphFunction(module.get_method("forward").function()).graph()->copy();
  torch::jit::Inline(*graph);
  if (graph->inputs()[0]->hasUses() || graph->outputs().size() != 1)
    throw ScriptError(ErrorCode::Corrupt, "This is not a block of a cut model.");
  const ScriptValues results = tuple_items(*graph, graph->outputs()[0]);
  graph->eraseOutput(0);
  for (torch::jit::Value* value : results) graph->registerOutput(value);
  torch::jit::EliminateDeadCode(graph);
  graph->eraseInput(0);
  return graph;
}

struct ScriptProgram::Code {
  ScriptGraph graph;
  torch::jit::Code code;
};

ScriptProgram::ScriptProgram(ScriptGraph graph)
    : code_(new Code{graph, torch::jit::Code(graph, "forward")}) {}
ScriptProgram::~ScriptProgram() = default;
ScriptProgram::ScriptProgram(ScriptProgram&&) noexcept = default;
ScriptProgram& ScriptProgram::operator=(ScriptProgram&&) noexcept = default;

void ScriptProgram::run(std::vector<c10::IValue>& stack) const {
  torch::jit::InterpreterState(code_->code).run(stack);
}

}  // namespace neuroshard::model
