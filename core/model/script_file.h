// TorchScript files: read, checked, and brought into the form that script_graph.h takes.
#pragma once

#include <torch/csrc/jit/api/module.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/compute/script.h"
#include "core/model/script_graph.h"

namespace neuroshard::model {

// Something expected that is wrong with a model or an argument; guarded_script() makes it a Status.
class ScriptError : public std::exception {
 public:
  ScriptError(ErrorCode code, std::string text) : code_(code), text_(std::move(text)) {}
  const char* what() const noexcept override { return text_.c_str(); }
  ErrorCode code() const { return code_; }

 private:
  ErrorCode code_;
  std::string text_;
};

// guarded() with one thread, for code that throws ScriptError, ScriptMessageError or what LibTorch throws
// while it does `what` ("reading the model"): the first line of the latter is what a person gets.
compute::Status guarded_script(const char* what, const std::function<void()>& call) noexcept;

// Throws ScriptError: no TorchScript, too large, has no forward().
torch::jit::Module read_script(const compute::ScriptHost& host);

// forward() in evaluation mode: frozen, inlined, without `self`, in-place operations replaced where that
// changes nothing. Throws ScriptError for a model that changes its own attributes.
ScriptGraph freeze_script(const torch::jit::Module& module);

// A piece (ScriptStructure::extract) as a TorchScript file, and back. The results come as one tuple.
std::string write_piece(const torch::jit::Graph& piece);
ScriptGraph read_piece(const compute::ScriptHost& host);

// Runs a graph with the plain interpreter: no profiling, no fusion, so every run is like the first.
class ScriptProgram {
 public:
  explicit ScriptProgram(ScriptGraph graph);
  ~ScriptProgram();
  ScriptProgram(ScriptProgram&&) noexcept;
  ScriptProgram& operator=(ScriptProgram&&) noexcept;
  // Arguments to results.
  void run(std::vector<c10::IValue>& stack) const;

 private:
  struct Code;
  std::unique_ptr<Code> code_;
};

}  // namespace neuroshard::model
