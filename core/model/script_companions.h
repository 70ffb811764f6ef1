// Threads that run a TorchScript graph over and over while its operations are timed. Blocks of a cut model
// share a machine's memory and caches, so what an operation takes beside other busy processors is what it
// will take in a pipeline; alone it can be a third faster.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "core/base/executor.h"
#include "core/model/script_file.h"
#include "core/model/script_graph.h"

namespace neuroshard::model {

class ScriptCompanions {
 public:
  // Returns once each of the `count` threads has run the graph once, or could not: a graph that fails does so
  // in the timed run as well, where it is reported. One computing thread each.
  ScriptCompanions(const ScriptStructure& structure, const std::vector<c10::IValue>& arguments,
                   std::uint32_t count);
  // Ends after the runs that are under way.
  ~ScriptCompanions();
  ScriptCompanions(const ScriptCompanions&) = delete;
  ScriptCompanions& operator=(const ScriptCompanions&) = delete;

 private:
  void work(const ScriptProgram& program, const std::vector<c10::IValue>& arguments);

  std::atomic<bool> stop_{false};
  std::mutex mutex_;
  std::condition_variable ran_;
  std::uint32_t warm_ = 0;  // threads that have run once
  std::vector<ScriptProgram> programs_;
  std::vector<std::vector<c10::IValue>> arguments_;
  std::vector<std::unique_ptr<Executor>> threads_;
};

// The whole graph, from its inputs to its results.
ScriptProgram whole_program(const ScriptStructure& structure);

// Tensors are copied: a model may write into its arguments.
std::vector<c10::IValue> copy_arguments(const std::vector<c10::IValue>& arguments);

}  // namespace neuroshard::model
