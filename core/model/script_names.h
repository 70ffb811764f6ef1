// Where in the model's source an operation stands, for people: "blocks.0.conv1".
#pragma once

#include <map>
#include <set>
#include <string>

#include "core/model/script_graph.h"

namespace neuroshard::model {

// LibTorch knows the chain of modules that an inlined operation came from, but of a module in a list only its
// number ("0.conv1"). Freezing names parameters by their whole path ("self.blocks.0.conv1.weight"), and equal
// parameters all by the first; so a path counts where it ends like the chain, and what stands before it holds
// for the other operations of that module too, unless two lists disagree.
class ScriptNames {
 public:
  explicit ScriptNames(const ScriptStructure& structure);
  // Empty where nothing is known.
  std::string place(const torch::jit::Node& operation) const;

 private:
  // By the first module of a chain with its type ("0(Residual)"): what stands before it, with a dot at the
  // end.
  std::map<std::string, std::set<std::string>> before_;
};

}  // namespace neuroshard::model
